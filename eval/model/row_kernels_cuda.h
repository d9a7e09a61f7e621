// Elementwise work between the products of a model on a GPU, one kernel each; ATen would take a pass over memory for
// every operation in it. Plain CUDA, no LibTorch. All are asynchronous on `stream`, a cudaStream_t, and throw
// std::runtime_error on CUDA failures.
#pragma once

#include <cstdint>

#include "kernels/types.h"

namespace replayeval {

// x, addend, sum: [rows, width] of `in`, dense; weight: [width] float32; out: [rows, width] of `out_dtype`.
// x / sqrt(mean(x^2) + eps) * weight in float32, rounded once; with an addend that of x + addend, rounded to `in`,
// which `sum` gets. A row's bits depend on the row alone.
struct RmsNormRows {
  const void* x = nullptr;
  const void* addend = nullptr;  // null: none, nor a sum
  void* sum = nullptr;
  const float* weight = nullptr;
  void* out = nullptr;
  std::int64_t rows = 0, width = 0;
  float eps = 1e-5F;
  Dtype in = Dtype::float32, out_dtype = Dtype::float32;
};
void rms_norm_rows(void* stream, const RmsNormRows& norm);

// out = max(x, 0)^2, rounded once; dense, `count` elements.
void squared_relu_elements(void* stream, const void* x, void* out, std::int64_t count, Dtype dtype);

}  // namespace replayeval
