#include "eval/comparator/churn/model_churn.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "eval/comparator/prompt.h"

namespace replayeval {
namespace {

// A log-probability is a float64 sum over the vocabulary, in an order that follows the number of rows. Equal float32
// logits can differ by so much there, and unequal ones differ by more.
constexpr double own_rounding = 1e-12;

}  // namespace

ModelChurn::ModelChurn(const Model& model, std::vector<Arm> arms, at::Tensor ids, std::vector<std::int64_t> lengths,
                       std::int64_t block, std::int64_t page_length)
    : model_(model),
      arms_(std::move(arms)),
      ids_(std::move(ids)),
      lengths_(std::move(lengths)),
      block_(block),
      page_length_(page_length),
      prompts_(model.make_cache({prefill_arm()}, 1, ids_.size(1))),
      alone_(make_cache(1)),
      calm_deviations_(arms_.size()),
      single_deviations_(arms_.size()) {}

std::unique_ptr<DecodeCache> ModelChurn::make_cache(std::int64_t slots) const {
  return model_.make_cache(arms_, slots, ids_.size(1), {page_length_});
}

void ModelChurn::begin(std::int64_t slots) {
  log_probs_ = at::zeros({static_cast<std::int64_t>(arms_.size()), slots, ids_.size(1)}, at::kDouble);
}

void ModelChurn::prefill(const ChurnRow& row, std::int64_t tokens, DecodeCache& cache) {
  const at::Tensor prompt = ids_[row.sequence].narrow(0, 0, tokens).to(at::kInt);
  prefill_slot(model_, {prompt.const_data_ptr<std::int32_t>(), static_cast<std::size_t>(tokens)}, block_, *prompts_,
               cache, row.slot);
}

at::Tensor ModelChurn::log_probs(const at::Tensor& hidden, const at::Tensor& next) const {
  const at::Tensor targets = next.to(hidden.device()).unsqueeze(-1);
  std::vector<at::Tensor> all;
  const at::Tensor logits = model_.logits(hidden);
  for (std::int64_t arm = 0; arm < hidden.size(0); ++arm) {
    const at::Tensor scores = logits[arm].to(at::kDouble);
    all.push_back(scores.gather(-1, targets).squeeze(-1).sub(scores.logsumexp(-1)));
  }
  return at::stack(all).cpu();
}

void ModelChurn::decode(const ChurnAction& call, DecodeCache& cache) {
  std::vector<std::int32_t> slots;
  std::vector<at::Tensor> rows;
  for (const ChurnRow& row : call.rows) {
    slots.push_back(row.slot);
    rows.push_back(ids_[row.sequence].narrow(0, row.begin, call.tokens + 1));
  }
  const at::Tensor ids = at::stack(rows);
  const at::Tensor hidden =
      model_.forward(ids.narrow(1, 0, call.tokens), cache, Mode::teacher_forced, nullptr, nullptr, slots);
  const at::Tensor found = log_probs(hidden, ids.narrow(1, 1, call.tokens));
  for (std::size_t row = 0; row < slots.size(); ++row)
    if (slots[row] >= 0)
      log_probs_.select(1, slots[row])
          .narrow(1, call.rows[row].begin, call.tokens)
          .copy_(found.select(1, static_cast<std::int64_t>(row)));
  most_page_bytes_ = std::max(most_page_bytes_, cache.key_value_bytes().held);
}

at::Tensor ModelChurn::undisturbed(std::int64_t sequence, std::int64_t prefilled) {
  at::Tensor& found = undisturbed_[{sequence, prefilled}];
  if (found.defined()) return found;
  alone_->reset();
  ChurnRow row;
  row.slot = 0;
  row.sequence = sequence;
  if (prefilled > 0) prefill(row, prefilled, *alone_);
  const std::int64_t tokens = lengths_[static_cast<std::size_t>(sequence)] - prefilled;
  const at::Tensor rest = ids_.narrow(0, sequence, 1).narrow(1, prefilled, tokens + 1);
  const at::Tensor hidden = model_.forward(rest.narrow(1, 0, tokens), *alone_, Mode::teacher_forced);
  found = log_probs(hidden, rest.narrow(1, 1, tokens)).select(1, 0);
  return found;
}

void ModelChurn::follow_calm(const ChurnScript& script) {
  ChurnTally nothing(script.slots);
  calm_slots_ = script.slots;
  follow(script, nothing);
  calm_slots_ = 0;
}

void ModelChurn::check(const ChurnRow& row, const Stay& stay, std::int64_t tokens, DecodeCache& /*cache*/,
                       ChurnTally& tally) {
  if (stay.stories.empty()) return;
  const at::Tensor alone = undisturbed(row.sequence, row.prefilled);
  const std::int64_t count = tokens - stay.begin;
  at::Tensor found = log_probs_.select(1, row.slot).narrow(1, stay.begin, count);
  if (!at::isfinite(found).all().item<bool>() || !at::isfinite(alone).all().item<bool>())
    throw std::runtime_error("churn: sequence " + std::to_string(row.sequence) + ": logits are not finite");
  const at::Tensor same = alone.narrow(1, stay.begin - row.prefilled, count);
  found = at::where((found - same).abs() < own_rounding, same, found);
  if (calm_slots_ > 0) {
    const at::Tensor deviations = (found - same).abs().contiguous();
    for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
      const double* first = deviations.const_data_ptr<double>() + static_cast<std::int64_t>(arm) * count;
      calm_deviations_[arm][calm_slots_].push_back(*std::max_element(first, first + count));
      if (calm_slots_ == 1) single_deviations_[arm].insert(single_deviations_[arm].end(), first, first + count);
    }
    return;
  }
  for (std::size_t arm = 0; arm < arms_.size(); ++arm)
    tally.add(ChurnLevel::model, arm, stay.stories,
              compare_tokens(found[static_cast<std::int64_t>(arm)], same[static_cast<std::int64_t>(arm)]));
}

}  // namespace replayeval
