// The replay kernels of this family.
#include "kernels/delta_rule/replay_cuda.cuh"

namespace replayeval::delta_rule::cuda {

template void replay_family<true>(cudaStream_t, const ReplayArguments&);

}  // namespace replayeval::delta_rule::cuda
