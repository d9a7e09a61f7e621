#pragma once

namespace replayeval::mamba2::cuda {

__device__ __forceinline__ float silu(float value) { return value / (1.0F + expf(-value)); }
__device__ __forceinline__ float sigmoid(float value) { return 1.0F / (1.0F + expf(-value)); }

}  // namespace replayeval::mamba2::cuda
