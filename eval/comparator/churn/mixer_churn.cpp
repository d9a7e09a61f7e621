#include "eval/comparator/churn/mixer_churn.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "eval/model/hybrid_cache.h"

namespace replayeval {
namespace {

std::vector<std::int32_t> slots_of(const ChurnAction& call) {
  std::vector<std::int32_t> slots;
  for (const ChurnRow& row : call.rows) slots.push_back(row.slot);
  return slots;
}

at::Tensor long_tensor(const std::vector<std::int64_t>& values, const at::Tensor& like) {
  return at::tensor(values, at::kLong).to(like.device());
}

HybridCache& hybrid(DecodeCache& cache) { return dynamic_cast<HybridCache&>(cache); }

}  // namespace

MixerChurn::MixerChurn(std::shared_ptr<const Mixer> mixer, std::vector<Arm> arms, at::Tensor inputs,
                       std::vector<std::int64_t> lengths, std::int64_t block)
    : mixer_(std::move(mixer)),
      arms_(std::move(arms)),
      inputs_(std::move(inputs)),
      lengths_(std::move(lengths)),
      block_(block),
      prompts_(cache_of({prefill_arm()}, 1)) {}

std::unique_ptr<DecodeCache> MixerChurn::cache_of(std::vector<Arm> arms, std::int64_t slots) const {
  return std::make_unique<HybridCache>(std::move(arms), std::vector<std::shared_ptr<const Mixer>>{mixer_},
                                       std::vector<KeyValueShape>(), inputs_.scalar_type(), slots, inputs_.size(1),
                                       KeyValuePageOptions());
}

std::unique_ptr<DecodeCache> MixerChurn::make_cache(std::int64_t slots) const { return cache_of(arms_, slots); }

void MixerChurn::begin(std::int64_t slots) {
  outputs_.clear();
  for (std::size_t arm = 0; arm < arms_.size(); ++arm)
    outputs_.push_back(at::zeros({slots, inputs_.size(1), 2 * mixer_->sizes().inner()}, inputs_.options()));
}

void MixerChurn::prefill(const ChurnRow& row, std::int64_t tokens, DecodeCache& cache) {
  HybridCache& prompts = hybrid(*prompts_);
  prompts.reset();
  for (std::int64_t begin = 0; begin < tokens; begin += block_) {
    const std::int64_t count = std::min(block_, tokens - begin);
    const RowSlots rows = prompts.rows({});
    mixer_->run(prompts.arm(0), prompts.of(0).mixers[0],
                inputs_.narrow(0, row.sequence, 1).narrow(1, begin, count).contiguous());
    prompts.advance(rows, count);
  }
  cache.store_prefilled(row.slot, prompts, 0);
}

// [rows, tokens, projection]. Padded rows are not numbers: nothing may come of them.
at::Tensor MixerChurn::inputs_of(const ChurnAction& call) const {
  std::vector<std::int64_t> places, padded;
  for (std::size_t row = 0; row < call.rows.size(); ++row) {
    if (call.rows[row].slot < 0) padded.push_back(static_cast<std::int64_t>(row));
    for (std::int64_t token = 0; token < call.tokens; ++token)
      places.push_back(call.rows[row].sequence * inputs_.size(1) + call.rows[row].begin + token);
  }
  at::Tensor inputs = inputs_.flatten(0, 1)
                          .index_select(0, long_tensor(places, inputs_))
                          .view({static_cast<std::int64_t>(call.rows.size()), call.tokens, inputs_.size(2)});
  if (!padded.empty()) inputs.index_fill_(0, long_tensor(padded, inputs_), std::numeric_limits<double>::quiet_NaN());
  return inputs;
}

void MixerChurn::decode(const ChurnAction& call, DecodeCache& cache) {
  HybridCache& slots = hybrid(cache);
  const RowSlots rows = slots.rows(slots_of(call));
  const RowPlaces& places = rows.places(call.tokens, inputs_.device());
  const at::Tensor inputs = inputs_of(call);
  const auto present = [&](const at::Tensor& all) {
    return places.present.defined() ? all.index_select(0, places.present) : all;
  };
  for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
    MixerCache& caches = slots.of(static_cast<std::int64_t>(arm)).mixers[0];
    const MixerResult result = mixer_->run(arms_[arm], caches, inputs, places.mixer_slots);
    const at::Tensor both = present(at::cat({result.y, result.out}, -1));
    const at::Tensor owners =
        places.slots.defined() ? places.slots : at::arange(rows.rows(), places.positions.options());
    outputs_[arm].index_put_({present(owners).unsqueeze(1), present(places.positions)}, both);
  }
  slots.advance(rows, call.tokens);
}

const MixerChurn::Undisturbed& MixerChurn::undisturbed(std::int64_t sequence, std::int64_t prefilled) {
  const auto [found, fresh] = undisturbed_.try_emplace({sequence, prefilled});
  if (!fresh) return found->second;
  const std::unique_ptr<DecodeCache> alone = cache_of(arms_, 1);
  ChurnRow row;
  row.slot = 0;
  row.sequence = sequence;
  if (prefilled > 0) prefill(row, prefilled, *alone);
  const at::Tensor rest = inputs_.narrow(0, sequence, 1)
                              .narrow(1, prefilled, lengths_[static_cast<std::size_t>(sequence)] - prefilled)
                              .contiguous();
  HybridCache& slots = hybrid(*alone);
  const RowSlots rows = slots.rows({});
  for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
    const MixerResult result = mixer_->run(arms_[arm], slots.of(static_cast<std::int64_t>(arm)).mixers[0], rest);
    found->second.outputs.push_back(at::cat({result.y, result.out}, -1)[0]);
  }
  slots.advance(rows, rest.size(1));
  for (std::size_t arm = 0; arm < arms_.size(); ++arm)
    found->second.states.push_back(
        mixer_->present_state(arms_[arm], slots.of(static_cast<std::int64_t>(arm)).mixers[0], 1));
  return found->second;
}

void MixerChurn::check(const ChurnRow& row, const Stay& stay, std::int64_t tokens, DecodeCache& cache,
                       ChurnTally& tally) {
  if (stay.stories.empty()) return;
  const Undisturbed& alone = undisturbed(row.sequence, row.prefilled);
  const std::int64_t count = tokens - stay.begin;
  const bool ends = tokens == lengths_[static_cast<std::size_t>(row.sequence)];
  const at::Tensor slot = at::tensor({row.slot}, at::kInt).to(inputs_.device());
  for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
    tally.add(ChurnLevel::mixer, arm, stay.stories,
              compare_tokens(outputs_[arm][row.slot].narrow(0, stay.begin, count),
                             alone.outputs[arm].narrow(0, stay.begin - row.prefilled, count)));
    if (!ends) continue;
    const MixerCache& caches = hybrid(cache).of(static_cast<std::int64_t>(arm)).mixers[0];
    const TokenDifferences state =
        compare_tokens(mixer_->present_state(arms_[arm], caches, 1, slot), alone.states[arm]);
    tally.add(ChurnLevel::mixer, arm, row.came, state.differing[0], state.deviation[0]);
  }
}

}  // namespace replayeval
