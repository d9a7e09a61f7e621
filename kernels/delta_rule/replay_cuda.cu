// The replay executor's way to its family's kernels, which are compiled in the family's folder.
#include "kernels/delta_rule/backends.h"
#include "kernels/delta_rule/replay_cuda.cuh"
#include "kernels/delta_rule/stream_backends_cuda.h"

namespace replayeval::delta_rule::cuda {

void replay(void* stream, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
            const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (replay_few(on, family, shape, form, block, in, parameters, state, ring, out)) return;
  if (replay_stream(on, family, shape, form, block, in, parameters, state, ring, out)) return;
  const ReplayArguments call{shape, form, block, in, parameters, state, ring, out, {}};
  const auto replay_one = family == Family::kda ? replay_family<true> : replay_family<false>;
  replay_one(on, call);
}

}  // namespace replayeval::delta_rule::cuda
