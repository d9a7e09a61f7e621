// The gate and group RMS norm on the GPU. Which kernel serves a call depends on its group's size; whether that reads
// vectors or single elements, on their alignment, and does not show in the bits.
#include "kernels/gated_norm/backends.h"
#include "kernels/gated_norm/held_group_cuda.cuh"
#include "kernels/gated_norm/long_group_cuda.cuh"

namespace replayeval::cuda {
namespace {

bool vectors_aligned(const GatedNorm& n) {
  return n.group_size % kVectorElements == 0 && rows_aligned(n.y, n.y_stride, n.y_dtype) &&
         rows_aligned(n.z, n.z_stride, n.dtype) && rows_aligned(n.out, n.out_stride, n.dtype) &&
         reinterpret_cast<std::uintptr_t>(n.weight) % 16 == 0;
}

// Calls call.template operator()<dtype>().
template <class Call>
void with_dtype(Dtype dtype, const Call& call) {
  switch (dtype) {
    case Dtype::float32:
      return call.template operator()<Dtype::float32>();
    case Dtype::bfloat16:
      return call.template operator()<Dtype::bfloat16>();
    case Dtype::float16:
      return call.template operator()<Dtype::float16>();
  }
}

template <GateForm kForm>
void launch_form(cudaStream_t stream, const GatedNorm& norm) {
  if (norm.group_size > kMostHeldGroup) return launch_long_groups<kForm>(stream, norm);
  if (!vectors_aligned(norm)) return launch_held_groups<kForm, AnyVector, AnyVector, AnyVector>(stream, norm);
  with_dtype(norm.y_dtype, [&]<Dtype kY>() {
    with_dtype(norm.dtype, [&]<Dtype kZ>() {
      launch_held_groups<kForm, AlignedVector<kY>, AlignedVector<kZ>, AlignedVector<Dtype::float32>>(stream, norm);
    });
  });
}

}  // namespace

void gated_norm(void* stream, const GatedNorm& norm) {
  const auto on = static_cast<cudaStream_t>(stream);
  switch (norm.form) {
    case GateForm::gate_then_norm:
      return launch_form<GateForm::gate_then_norm>(on, norm);
    case GateForm::norm_then_gate:
      return launch_form<GateForm::norm_then_gate>(on, norm);
    case GateForm::gate_only:
      return launch_form<GateForm::gate_only>(on, norm);
  }
}

}  // namespace replayeval::cuda
