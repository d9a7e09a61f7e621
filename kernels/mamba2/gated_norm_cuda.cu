// The gate and group RMS norm on the GPU: a block takes one group of one row.
#include "kernels/mamba2/backends.h"
#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/mamba2/silu_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

constexpr std::int64_t kMaxThreads = 256;

__device__ __forceinline__ float gate(const GatedNorm& n, std::int64_t row, std::int64_t i) {
  const float z = load_element(n.z, row * n.z_stride + i, n.dtype);
  return n.activation == GateActivation::silu ? silu(z) : sigmoid(z);
}

// What the norm is taken of.
template <GateForm form>
__device__ __forceinline__ float norm_input(const GatedNorm& n, std::int64_t row, std::int64_t i) {
  const float y = load_element(n.y, row * n.y_stride + i, n.y_dtype);
  return form == GateForm::norm_then_gate ? y : y * gate(n, row, i);
}

// Sum over the block in an order that its size alone fixes; every thread gets it.
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float warp_sums[kMaxThreads / 32];
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) {
    value = value + __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  }
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0F;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum = sum + warp_sums[warp];
  return sum;
}

template <GateForm form>
__global__ void gated_norm_kernel(const __grid_constant__ GatedNorm n) {
  const std::int64_t groups = n.width / n.group_size;
  const std::int64_t row = blockIdx.x / groups;
  const std::int64_t first = blockIdx.x % groups * n.group_size;
  float inverse = 1.0F;
  if constexpr (form != GateForm::gate_only) {
    float squares = 0.0F;
    for (std::int64_t i = threadIdx.x; i < n.group_size; i += blockDim.x) {
      const float h = norm_input<form>(n, row, first + i);
      squares = fmaf(h, h, squares);
    }
    const float mean_square = block_sum(squares) / static_cast<float>(n.group_size);
    inverse = 1.0F / sqrtf(mean_square + n.eps);
  }
  for (std::int64_t i = threadIdx.x; i < n.group_size; i += blockDim.x) {
    float h = norm_input<form>(n, row, first + i);
    if constexpr (form != GateForm::gate_only) h = n.weight[first + i] * (h * inverse);
    if constexpr (form == GateForm::norm_then_gate) h = h * gate(n, row, first + i);
    store_element(n.out, row * n.out_stride + first + i, h, n.dtype);
  }
}

auto kernel_of(GateForm form) {
  switch (form) {
    case GateForm::norm_then_gate:
      return &gated_norm_kernel<GateForm::norm_then_gate>;
    case GateForm::gate_only:
      return &gated_norm_kernel<GateForm::gate_only>;
    case GateForm::gate_then_norm:
      break;
  }
  return &gated_norm_kernel<GateForm::gate_then_norm>;
}

}  // namespace

void gated_norm(void* stream, const GatedNorm& norm) {
  const std::int64_t blocks = norm.rows * (norm.width / norm.group_size);
  if (blocks > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("mamba2::gated_norm: " + std::to_string(blocks) + " groups are too many for a call");
  }
  const auto threads = static_cast<unsigned>(std::min(kMaxThreads, (norm.group_size + 31) / 32 * 32));
  kernel_of(norm.form)<<<static_cast<unsigned>(blocks), threads, 0, static_cast<cudaStream_t>(stream)>>>(norm);
  expect_launched("gated_norm");
}

}  // namespace replayeval::mamba2::cuda
