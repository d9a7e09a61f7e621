#include "eval/metrics/logit_spacing.h"
#include "eval/metrics/row_divergence_cuda.h"

namespace replayeval::metrics {

std::vector<RowScore> scores_of(const RowFacts* facts, const RowFacts* baseline, std::int64_t rows, Dtype logit_dtype) {
  std::vector<RowScore> scores(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    const RowFacts &own = facts[row], &base = baseline[row];
    RowScore& score = scores[static_cast<std::size_t>(row)];
    score.finite = own.finite != 0.0 && base.finite != 0.0;
    if (own.finite == 0.0) {
      score.flaw = static_cast<std::int64_t>(own.top1);
      score.flawed_logit = static_cast<float>(own.max);
    }
    if (!score.finite) continue;
    score.log_prob = own.log_prob;
    score.kl = own.kl;
    score.delta_p = probability_difference(own.log_prob, base.log_prob);
    score.rank = static_cast<std::int32_t>(own.rank);
    score.same_top1 = own.top1 == base.top1;
    score.tie = own.max - own.second <= spacing(own.max, logit_dtype);
  }
  return scores;
}

}  // namespace replayeval::metrics
