#include "eval/metrics/divergence.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "eval/metrics/device_divergence.h"
#include "eval/metrics/row_divergence.h"

namespace replayeval::metrics {
namespace {

std::string shape_of(const at::Tensor& tensor) {
  std::string text = "[";
  for (std::int64_t i = 0; i < tensor.dim(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(tensor.size(i));
  return text + "]";
}

void check_logits(std::span<const at::Tensor> logits, const std::vector<std::string>& names) {
  if (logits.size() != names.size())
    throw std::invalid_argument("logits of " + std::to_string(logits.size()) + " arms, expected " +
                                std::to_string(names.size()));
  for (std::size_t a = 0; a < logits.size(); ++a) {
    const at::Tensor& tensor = logits[a];
    const std::string start = "logits of arm '" + names[a] + "' ";
    if (tensor.scalar_type() != at::kFloat)
      throw std::invalid_argument(start + "are " + c10::toString(tensor.scalar_type()) + ", expected float32");
    if (tensor.dim() != 2 || tensor.size(1) < 1 || tensor.sizes() != logits[0].sizes())
      throw std::invalid_argument(start + "have shape " + shape_of(tensor) + ", expected [rows, vocab] " +
                                  (a == 0 ? "" : "as the first arm's " + shape_of(logits[0])));
    if (!tensor.is_contiguous()) throw std::invalid_argument(start + "are not contiguous");
    if (tensor.device() != logits[0].device())
      throw std::invalid_argument(start + "are on " + tensor.device().str() + ", expected " + logits[0].device().str());
  }
}

at::Tensor checked_targets(const at::Tensor& targets, std::int64_t rows, std::int64_t vocab) {
  if (targets.scalar_type() != at::kLong || targets.dim() != 1 || targets.size(0) != rows)
    throw std::invalid_argument("targets are " + std::string(c10::toString(targets.scalar_type())) + " " +
                                shape_of(targets) + ", expected int64 [" + std::to_string(rows) + "]");
  at::Tensor here = targets.cpu().contiguous();
  const std::int64_t* ids = here.const_data_ptr<std::int64_t>();
  for (std::int64_t r = 0; r < rows; ++r)
    if (ids[r] < 0 || ids[r] >= vocab)
      throw std::invalid_argument("target " + std::to_string(ids[r]) + " of row " + std::to_string(r) +
                                  " is outside the vocabulary of " + std::to_string(vocab));
  return here;
}

std::vector<std::vector<RowScore>> score_on_cpu(std::span<const at::Tensor> logits, const at::Tensor& targets,
                                                std::size_t baseline, Dtype logit_dtype) {
  std::vector<const float*> data;
  for (const at::Tensor& tensor : logits) data.push_back(tensor.const_data_ptr<float>());
  const std::span<const std::int64_t> ids(targets.const_data_ptr<std::int64_t>(),
                                          static_cast<std::size_t>(targets.size(0)));
  return score_rows(data, ids, logits[baseline].size(1), baseline, logit_dtype);
}

[[noreturn]] void refuse_row(const RowScore& score, std::size_t row, std::int64_t rows_before, const std::string& arm) {
  throw std::runtime_error("arm '" + arm + "', row " + std::to_string(rows_before + static_cast<std::int64_t>(row)) +
                           ": the logit of token " + std::to_string(score.flaw) + " is " +
                           std::to_string(score.flawed_logit) + ", expected a finite number");
}

void append(const std::vector<RowScore>& scores, TokenDivergence& tokens) {
  for (const RowScore& score : scores) {
    tokens.log_prob.push_back(score.log_prob);
    tokens.kl.push_back(static_cast<float>(score.kl));
    tokens.delta_p.push_back(static_cast<float>(score.delta_p));
    tokens.rank.push_back(score.rank);
    tokens.same_top1.push_back(score.same_top1 ? 1 : 0);
    tokens.tie.push_back(score.tie ? 1 : 0);
  }
}

}  // namespace

DivergenceAccumulator::DivergenceAccumulator(std::vector<std::string> arms, std::size_t baseline, Dtype logit_dtype)
    : names_(std::move(arms)), baseline_(baseline), logit_dtype_(logit_dtype), tokens_(names_.size()) {
  if (baseline_ >= names_.size())
    throw std::invalid_argument("baseline is arm " + std::to_string(baseline_) + " of " +
                                std::to_string(names_.size()) + ", expected one of them");
}

void DivergenceAccumulator::begin(std::span<const at::Tensor> logits, const at::Tensor& targets) {
  finish();
  check_logits(logits, names_);
  const at::Tensor ids = checked_targets(targets, logits[0].size(0), logits[0].size(1));
  if (logits[0].device().is_cpu())
    begun_ = [scores = score_on_cpu(logits, ids, baseline_, logit_dtype_)] { return scores; };
  else
    begun_ = score_on_gpu(logits, ids.to(logits[0].device()), baseline_, logit_dtype_);
}

void DivergenceAccumulator::finish() {
  if (!begun_) return;
  const std::vector<std::vector<RowScore>> scores = std::exchange(begun_, nullptr)();
  const std::size_t rows = scores[baseline_].size();
  for (std::size_t row = 0; row < rows; ++row) {
    if (!scores[baseline_][row].finite) refuse_row(scores[baseline_][row], row, rows_, names_[baseline_]);
    for (std::size_t a = 0; a < scores.size(); ++a)
      if (!scores[a][row].finite) refuse_row(scores[a][row], row, rows_, names_[a]);
  }
  for (std::size_t a = 0; a < scores.size(); ++a) append(scores[a], tokens_[a]);
  rows_ += static_cast<std::int64_t>(rows);
}

void DivergenceAccumulator::add(std::span<const at::Tensor> logits, const at::Tensor& targets) {
  begin(logits, targets);
  finish();
}

void DivergenceAccumulator::add(const at::Tensor& logits, const at::Tensor& targets) {
  if (logits.dim() != 3)
    throw std::invalid_argument("logits have shape " + shape_of(logits) + ", expected [arms, rows, vocab]");
  std::vector<at::Tensor> arms;
  for (std::int64_t a = 0; a < logits.size(0); ++a) arms.push_back(logits.select(0, a));
  add(std::span<const at::Tensor>(arms), targets);
}

}  // namespace replayeval::metrics
