// The same scores as row_divergence.h where the logits lie in GPU memory: one kernel an arm, float64 arithmetic, sums
// in an order that the row's length alone fixes.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/metrics/row_divergence.h"

namespace replayeval::metrics {

// What the kernels find out about a row.
struct RowFacts {
  double finite = 0.0;                // not 0: all logits are; otherwise only top1 and max count: the first that is not
  double max = 0.0, second = 0.0;     // the largest, the second largest (-infinity: none)
  double log_prob = 0.0, rank = 0.0;  // of the target
  double top1 = 0.0;                  // the largest logit's place, the first of several
  double kl = 0.0;                    // against the baseline
};

// logits: float32 [rows, vocab], dense; targets: [rows], inside the vocabulary; facts: [rows] out. All in GPU memory,
// asynchronous on `stream`, a cudaStream_t. Throws std::runtime_error on CUDA failures.
void describe_rows_on_gpu(void* stream, const float* logits, const std::int64_t* targets, std::int64_t rows,
                          std::int64_t vocab, RowFacts* facts);
// The same of an arm's rows and of the baseline's (null: not wanted), whose bits are the same as if described alone,
// and facts.kl.
void compare_rows_on_gpu(void* stream, const float* baseline, const float* logits, const std::int64_t* targets,
                         std::int64_t rows, std::int64_t vocab, RowFacts* baseline_facts, RowFacts* facts);

// facts, baseline: [rows], copied to the host.
std::vector<RowScore> scores_of(const RowFacts* facts, const RowFacts* baseline, std::int64_t rows, Dtype logit_dtype);

}  // namespace replayeval::metrics
