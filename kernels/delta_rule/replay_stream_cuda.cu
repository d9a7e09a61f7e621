#include "kernels/delta_rule/replay_stream_cuda.cuh"

#include "kernels/delta_rule/stream_backends_cuda.h"

namespace replayeval::delta_rule::cuda {
namespace {

template <Dtype kState, Dtype kRing, bool kChannels>
bool launch(cudaStream_t stream, StreamReplayArguments arguments) {
  using Job = DeltasJob<kState, kRing, kChannels>;
  arguments.cut.ring_bytes = Job::ring_of(arguments).bytes();
  return launch_stream<Job>(stream, arguments);
}

template <Dtype kState, bool kChannels>
bool launch_with_ring(cudaStream_t stream, const StreamReplayArguments& arguments) {
  return arguments.form.ring_dtype == Dtype::float32 ? launch<kState, Dtype::float32, kChannels>(stream, arguments)
                                                     : launch<kState, Dtype::bfloat16, kChannels>(stream, arguments);
}

template <bool kChannels>
bool launch_with_state(cudaStream_t stream, const StreamReplayArguments& arguments) {
  switch (arguments.state.storage.dtype) {
    case Dtype::float32:
      return launch_with_ring<Dtype::float32, kChannels>(stream, arguments);
    case Dtype::bfloat16:
      return launch_with_ring<Dtype::bfloat16, kChannels>(stream, arguments);
    default:
      return launch_with_ring<Dtype::float16, kChannels>(stream, arguments);
  }
}

}  // namespace

bool replay_stream(cudaStream_t stream, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                   const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                   const Output& out) {
  if (block.tokens != 1 || form.ring_form != RingForm::deltas || form.route != Route::output_only) return false;
  HeadShape heads = head_shape(shape);
  const int group_heads = heads.heads / heads.groups;
  const bool channels = family == Family::kda;
  if (channels) heads.groups = 1;  // a unit may have heads of several
  const std::int64_t entry_gates = channels ? kTileColumns : 1;
  if (!streams(heads, block.batch, 1) ||
      !copies_scalars(ring.log_decay, form.buffer_len * entry_gates, shape.value_dim)) {
    return false;
  }
  StreamReplayArguments arguments{
      shape, form, block, in, parameters, state, ring, out, StreamCut(heads, block.batch), reads_fours(in)};
  if (!channels) return launch_with_state<false>(stream, arguments);
  arguments.fours = arguments.fours && lies_in_fours(in.f, in.f_stride, in.dtype);
  arguments.bias_in_fours = lies_in_fours(parameters.dt_bias, 0, Dtype::float32);
  arguments.group_heads = Divisor(group_heads);
  arguments.unit_keys = unit_keys_of(kUnitRows / heads.rows, group_heads);
  return launch_with_state<true>(stream, arguments);
}

}  // namespace replayeval::delta_rule::cuda
