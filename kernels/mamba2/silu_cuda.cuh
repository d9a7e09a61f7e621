#pragma once

namespace replayeval::mamba2::cuda {

__device__ __forceinline__ float silu(float value) { return value / (1.0F + expf(-value)); }

}  // namespace replayeval::mamba2::cuda
