// sigmoid(v) = 1 / (1 + exp(-v)) and silu(v) = v sigmoid(v), on the GPU.
#pragma once

namespace replayeval::cuda {

__device__ __forceinline__ float sigmoid_denominator(float value) { return 1.0F + expf(-value); }
__device__ __forceinline__ float silu(float value) { return value / sigmoid_denominator(value); }

}  // namespace replayeval::cuda
