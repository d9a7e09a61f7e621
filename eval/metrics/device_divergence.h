// The same scores as row_divergence.h of logits that lie on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "eval/metrics/row_divergence.h"
#include "kernels/types.h"

namespace replayeval::metrics {

// Waits for scores[arm][row] and returns them; a row that is not finite in an arm or in the baseline has finite ==
// false there.
using PendingScores = std::function<std::vector<std::vector<RowScore>>()>;

// logits[arm]: dense float32 [rows, vocab] on one GPU; targets: int64 [rows] there, inside the vocabulary. What is
// enqueued is all that reads them. Throws std::runtime_error on CUDA failures.
PendingScores score_on_gpu(std::span<const at::Tensor> logits, const at::Tensor& targets, std::size_t baseline,
                           Dtype logit_dtype);

}  // namespace replayeval::metrics
