#include "kernels/delta_rule/replay_stream_cuda.cuh"

#include "kernels/delta_rule/stream_backends_cuda.h"

namespace replayeval::delta_rule::cuda {
namespace {

template <Dtype kState, Dtype kRing>
bool launch(cudaStream_t stream, StreamReplayArguments arguments) {
  arguments.cut.ring_bytes = UnitRing<kRing>(arguments.form.buffer_len, arguments.cut.head_rows_log2).bytes();
  return launch_stream<DeltasJob<kState, kRing>>(stream, arguments);
}

template <Dtype kState>
bool launch_with_ring(cudaStream_t stream, const StreamReplayArguments& arguments) {
  return arguments.form.ring_dtype == Dtype::float32 ? launch<kState, Dtype::float32>(stream, arguments)
                                                     : launch<kState, Dtype::bfloat16>(stream, arguments);
}

}  // namespace

bool replay_stream(cudaStream_t stream, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                   const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                   const Output& out) {
  if (family != Family::gated_delta || block.tokens != 1 ||
      !copies_scalars(ring.log_decay, form.buffer_len, shape.value_dim) ||
      !streams(head_shape(shape), block.batch, 1) || form.ring_form != RingForm::deltas ||
      form.route != Route::output_only) {
    return false;
  }
  const StreamReplayArguments arguments{
      shape, form, block, in, parameters, state, ring, out, StreamCut(head_shape(shape), block.batch), reads_fours(in)};
  switch (state.storage.dtype) {
    case Dtype::float32:
      return launch_with_ring<Dtype::float32>(stream, arguments);
    case Dtype::bfloat16:
      return launch_with_ring<Dtype::bfloat16>(stream, arguments);
    default:
      return launch_with_ring<Dtype::float16>(stream, arguments);
  }
}

}  // namespace replayeval::delta_rule::cuda
