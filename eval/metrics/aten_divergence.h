// The same scores as row_divergence.h by ATen operations in float64: what runs on CUDA.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "eval/metrics/row_divergence.h"
#include "kernels/types.h"

namespace replayeval::metrics {

// logits[arm]: float32 [rows, vocab] on one device; targets: int64 [rows] there. scores[arm][row]; a row that is not
// finite in an arm or in the baseline has finite == false there. Works in chunks of rows, about 300 MB at most.
std::vector<std::vector<RowScore>> score_with_aten(std::span<const at::Tensor> logits, const at::Tensor& targets,
                                                   std::size_t baseline, Dtype logit_dtype);

}  // namespace replayeval::metrics
