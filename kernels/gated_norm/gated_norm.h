// The mixer's gate and group RMS norm, row by row, so that its bits depend on the row alone: a sum over a group runs in
// an order that the group's size alone fixes. Arithmetic in float32, one rounding to `dtype` at the end.
#pragma once

#include "kernels/types.h"

namespace replayeval {

// act(z) is silu(z) = z / (1 + exp(-z)), or sigmoid(z).
enum class GateActivation : std::uint8_t { silu, sigmoid };

// norm(h) = weight * h / sqrt(mean_group(h^2) + eps)
enum class GateForm : std::uint8_t {
  gate_then_norm,  // norm(y * act(z))
  norm_then_gate,  // norm(y) * act(z)
  gate_only,       // y * act(z): group_size only says how a row is split into work; eps and weight are not read
};

struct GatedNorm {
  std::int64_t rows = 0;
  std::int64_t width = 0;  // a multiple of group_size
  std::int64_t group_size = 0;
  float eps = 1e-5F;
  const float* weight = nullptr;  // [width]; may be null for gate_only
  const void* y = nullptr;        // [rows, width], y_dtype
  std::int64_t y_stride = 0;
  Dtype y_dtype = Dtype::float32;
  const void* z = nullptr;  // [rows, width], dtype
  std::int64_t z_stride = 0;
  void* out = nullptr;  // [rows, width], dtype
  std::int64_t out_stride = 0;
  Dtype dtype = Dtype::float32;  // of z and out
  GateForm form = GateForm::gate_then_norm;
  GateActivation activation = GateActivation::silu;
};

void gated_norm(const Device&, const GatedNorm&);

}  // namespace replayeval
