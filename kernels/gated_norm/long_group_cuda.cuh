// Groups too long to be held in a block's registers: a block reads one twice.
#pragma once

#include "kernels/gated_norm/arguments_cuda.cuh"

namespace replayeval::cuda {

template <GateForm kForm>
__global__ void long_group_kernel(const __grid_constant__ GatedNorm n) {
  const std::int64_t groups = n.width / n.group_size;
  const std::int64_t row = blockIdx.x / groups;
  const std::int64_t first = blockIdx.x % groups * n.group_size;
  const auto gate_at = [&](std::int64_t i) {
    float gate[1] = {load_element(n.z, row * n.z_stride + first + i, n.dtype)};
    gate_factors(n.activation == GateActivation::silu, gate);
    return gate[0];
  };
  const auto input_at = [&](std::int64_t i, float gate) {
    return norm_input<kForm>(load_element(n.y, row * n.y_stride + first + i, n.y_dtype), gate);
  };
  float inverse = 1.0F;
  if constexpr (kForm != GateForm::gate_only) {
    float squares = 0.0F;
    for (std::int64_t i = threadIdx.x; i < n.group_size; i += blockDim.x) {
      const float h = input_at(i, kForm == GateForm::norm_then_gate ? 1.0F : gate_at(i));
      squares = fmaf(h, h, squares);
    }
    inverse = inverse_root(group_sum(squares, static_cast<int>(blockDim.x)), n);
  }
  for (std::int64_t i = threadIdx.x; i < n.group_size; i += blockDim.x) {
    const float gate = gate_at(i);
    const float weight = kForm == GateForm::gate_only ? 0.0F : n.weight[first + i];
    const float out = norm_output<kForm>(input_at(i, gate), gate, inverse, weight);
    store_element(n.out, row * n.out_stride + first + i, out, n.dtype);
  }
}

template <GateForm kForm>
void launch_long_groups(cudaStream_t stream, const GatedNorm& norm) {
  const std::int64_t blocks = norm.rows * (norm.width / norm.group_size);
  if (blocks > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("gated_norm: " + std::to_string(blocks) + " groups are too many for a call");
  }
  long_group_kernel<kForm><<<static_cast<unsigned>(blocks), kNormThreads, 0, stream>>>(norm);
  expect_launched("gated_norm");
}

}  // namespace replayeval::cuda
