#include "eval/metrics/aten_divergence.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "eval/metrics/logit_spacing.h"

namespace replayeval::metrics {
namespace {

constexpr std::int64_t chunk_elements = std::int64_t{1} << 22;  // 32 MB a float64 temporary, about nine at a time

// One arm's rows of a chunk. [rows, 1] each unless said otherwise.
struct Rows {
  at::Tensor logits;  // float64 [rows, vocab]
  at::Tensor max, second, top1, log_sum, log_prob, rank, finite;
};

Rows describe(const at::Tensor& logits, const at::Tensor& targets) {
  Rows rows;
  const std::int64_t vocab = logits.size(1);
  rows.finite = at::isfinite(logits).all(1, true);
  rows.logits = logits.to(at::kDouble);
  rows.max = rows.logits.amax(1, true);
  const at::Tensor largest = rows.logits == rows.max;
  const at::Tensor ids = at::arange(vocab, logits.options().dtype(at::kLong)).unsqueeze(0);
  rows.top1 = at::where(largest, ids, vocab).amin(1, true);  // the lowest among equals
  const at::Tensor below = rows.logits.masked_fill(largest, -std::numeric_limits<double>::infinity()).amax(1, true);
  rows.second = at::where(largest.sum(1, true) > 1, rows.max, below);
  rows.log_sum = (rows.logits - rows.max).exp_().sum(1, true).log_();
  const at::Tensor at_target = rows.logits.gather(1, targets.unsqueeze(1));
  rows.log_prob = (at_target - rows.max) - rows.log_sum;
  rows.rank = (rows.logits > at_target).sum(1, true) + 1;
  return rows;
}

// exp(-c) - 1 + c, by its series where that cancels.
at::Tensor excess(const at::Tensor& c) {
  const at::Tensor series = c * c * (0.5 - c * (1.0 / 6.0 - c * (1.0 / 24.0 - c / 120.0)));
  return at::where(c.abs() < 1e-3, series, at::expm1(-c) + c);
}

// Forms (1) and (2) of row_divergence.h.
at::Tensor divergence(const Rows& baseline, const at::Tensor& weight, const Rows& arm) {
  const at::Tensor difference = baseline.logits - arm.logits;
  const at::Tensor total = weight.sum(1, true);
  const at::Tensor mu = (weight * difference).sum(1, true) / total;
  const at::Tensor plain = mu - (baseline.max - arm.max) - (baseline.log_sum - arm.log_sum);
  const at::Tensor c = difference - mu;
  const at::Tensor close = at::log1p((weight * excess(c.clamp_min(-600.0))).sum(1, true) / total);
  const at::Tensor use_close = (plain < small_divergence).logical_and(c.amin(1, true) > -600.0);
  return at::where(use_close, close, plain).clamp_min(0.0);
}

void read_back(const Rows& rows, const Rows& baseline, const at::Tensor& kl, Dtype logit_dtype,
               std::vector<RowScore>& scores) {
  const at::Tensor table =
      at::cat({rows.finite.to(at::kDouble), rows.log_prob, kl, baseline.log_prob, rows.rank.to(at::kDouble),
               (rows.top1 == baseline.top1).to(at::kDouble), rows.max, rows.second, baseline.finite.to(at::kDouble)},
              1)
          .cpu()
          .contiguous();
  const auto columns = table.size(1);
  const double* row = table.const_data_ptr<double>();
  for (std::int64_t r = 0; r < table.size(0); ++r, row += columns) {
    RowScore score;
    score.finite = row[0] != 0.0 && row[8] != 0.0;
    if (score.finite) {
      score.log_prob = row[1];
      score.kl = row[2];
      score.delta_p = probability_difference(row[1], row[3]);
      score.rank = static_cast<std::int32_t>(row[4]);
      score.same_top1 = row[5] != 0.0;
      score.tie = row[6] - row[7] <= spacing(row[6], logit_dtype);
    }
    scores.push_back(score);
  }
}

}  // namespace

std::vector<std::vector<RowScore>> score_with_aten(std::span<const at::Tensor> logits, const at::Tensor& targets,
                                                   std::size_t baseline, Dtype logit_dtype) {
  std::vector<std::vector<RowScore>> scores(logits.size());
  const std::int64_t rows = targets.size(0), vocab = logits[baseline].size(1);
  const std::int64_t step = std::max<std::int64_t>(1, chunk_elements / vocab);
  for (std::int64_t begin = 0; begin < rows; begin += step) {
    const std::int64_t count = std::min(step, rows - begin);
    const at::Tensor chunk_targets = targets.narrow(0, begin, count);
    const Rows reference = describe(logits[baseline].narrow(0, begin, count), chunk_targets);
    const at::Tensor weight = (reference.logits - reference.max).exp_();
    for (std::size_t a = 0; a < logits.size(); ++a) {
      if (a == baseline) {
        read_back(reference, reference, at::zeros_like(reference.max), logit_dtype, scores[a]);
        continue;
      }
      const Rows arm = describe(logits[a].narrow(0, begin, count), chunk_targets);
      read_back(arm, reference, divergence(reference, weight, arm), logit_dtype, scores[a]);
    }
  }
  return scores;
}

}  // namespace replayeval::metrics
