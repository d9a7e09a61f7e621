// The gate and group RMS norm on the CPU: a thread takes whole rows, a group at a time.
#include "kernels/gated_norm/backends.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gated_norm/gated_norm_cpu.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/chunk-inl.h"
#include "kernels/silu-inl.h"
#include "kernels/storage_simd-inl.h"

#include <hwy/highway.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <memory>

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {

// h *= act(gate)
void apply_gate(GateActivation activation, const float* gate, std::size_t size, float* h) {
  for (std::size_t i = 0; i < size; i += kChunk) {
    const Chunk z = Chunk::load(gate + i);
    const Chunk factor = activation == GateActivation::silu ? silu(z) : sigmoid(z);
    mul(Chunk::load(h + i), factor).store(h + i);
  }
}

// h = weight * h / sqrt(mean(h^2) + eps), the mean over `size` elements; those from there to `rounded_up` are zero.
void normalise(const float* weight, float eps, std::size_t size, std::size_t rounded_up, float* h) {
  const float mean_square = dot(h, h, rounded_up) / static_cast<float>(size);
  const Chunk inverse = Chunk::all(1.0F / std::sqrt(mean_square + eps));
  for (std::size_t i = 0; i < rounded_up; i += kChunk)
    mul(Chunk::load(weight + i), mul(Chunk::load(h + i), inverse)).store(h + i);
}

// scratch: 3 x group_size floats, group_size rounded up to a multiple of 8.
void gated_norm_group(const GatedNorm& norm, std::int64_t row, std::int64_t first, float* scratch) {
  const auto size = static_cast<std::size_t>(norm.group_size);
  const std::size_t rounded_up = (size + kChunk - 1) / kChunk * kChunk;
  float* h = scratch;
  float* gate = h + rounded_up;
  float* weight = gate + rounded_up;
  for (float* part : {h, gate, weight}) std::fill(part + size, part + rounded_up, 0.0F);
  widen(norm.y_dtype, norm.y, row * norm.y_stride + first, size, h);
  widen(norm.dtype, norm.z, row * norm.z_stride + first, size, gate);

  if (norm.form != GateForm::norm_then_gate) apply_gate(norm.activation, gate, rounded_up, h);
  if (norm.form != GateForm::gate_only) {
    std::copy_n(norm.weight + first, size, weight);
    normalise(weight, norm.eps, size, rounded_up, h);
  }
  if (norm.form == GateForm::norm_then_gate) apply_gate(norm.activation, gate, rounded_up, h);
  narrow({norm.dtype, Overflow::infinity}, h, size, norm.out, row * norm.out_stride + first);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace replayeval {
HWY_EXPORT(gated_norm_group);

namespace cpu {

void gated_norm(const GatedNorm& norm) {
  const std::int64_t groups = norm.width / norm.group_size;
  const auto floats = static_cast<std::size_t>(3 * (norm.group_size + 8));
  const int threads = norm.rows * groups < 2 ? 1 : omp_get_max_threads();
  const auto scratch = std::make_unique_for_overwrite<float[]>(floats * static_cast<std::size_t>(threads));
  const auto run = HWY_DYNAMIC_DISPATCH(gated_norm_group);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t task = 0; task < norm.rows * groups; ++task) {
    float* own = scratch.get() + floats * static_cast<std::size_t>(omp_get_thread_num());
    run(norm, task / groups, task % groups * norm.group_size, own);
  }
}

}  // namespace cpu
}  // namespace replayeval
#endif  // HWY_ONCE
