#include "eval/comparator/generation/generator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include "eval/comparator/generation/stop_strings.h"
#include "eval/comparator/prompt.h"

namespace replayeval {
namespace {

// Distance of neighbouring numbers of the type, relative to the smaller end of a binade.
double spacing_of(Dtype dtype) {
  if (dtype == Dtype::bfloat16) return 0x1p-7;
  return dtype == Dtype::float16 ? 0x1p-10 : 0x1p-23;
}

at::Tensor row_of(const std::vector<std::int32_t>& tokens, std::int64_t begin, std::int64_t count) {
  std::vector<std::int64_t> ids(tokens.begin() + begin, tokens.begin() + begin + count);
  return at::tensor(ids, at::kLong).unsqueeze(0);
}

// Results of padded rows mean nothing, and need not be finite.
void silence_padded_rows(const std::vector<std::int32_t>& live, std::int64_t arms, at::Tensor& logits) {
  if (std::find(live.begin(), live.end(), -1) == live.end()) return;
  std::vector<std::int64_t> padded;
  for (std::int64_t arm = 0; arm < arms; ++arm)
    for (std::size_t row = 0; row < live.size(); ++row)
      if (live[row] < 0)
        padded.push_back(arm * static_cast<std::int64_t>(live.size()) + static_cast<std::int64_t>(row));
  logits.index_fill_(0, at::tensor(padded, at::kLong).to(logits.device()), 0.0);
}

}  // namespace

struct Generator::Slot {
  const GenerationItem* item = nullptr;  // null: free
  std::optional<StopStrings> stops;
  std::vector<std::int32_t> next;  // by arm: the token that the coming step decodes
  std::vector<bool> ended;         // by arm
  std::vector<GeneratedSequence> sequences;
  std::uint64_t position = 0;  // of the token that the coming step chooses, from 0

  bool done() const {
    return std::all_of(ended.begin(), ended.end(), [](bool arm) { return arm; });
  }
};

Generator::Generator(const Model& model, std::vector<Arm> arms, std::shared_ptr<const datasets::Tokenizer> tokenizer,
                     GenerationOptions options, std::int64_t capacity)
    : model_(model), arms_(std::move(arms)), tokenizer_(std::move(tokenizer)), options_(std::move(options)) {
  if (options_.block < 1) throw std::invalid_argument("generation: a block below 1; expected at least one token");
  cache_ = model_.make_cache(arms_, options_.slots, capacity);
  if (options_.prefill) prompts_ = model_.make_cache({prefill_arm()}, 1, capacity);
  slots_.resize(static_cast<std::size_t>(options_.slots));
}

Generator::~Generator() = default;

void Generator::check(const GenerationItem& item) const {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("generation: item " + std::to_string(item.item) + ": " + what);
  };
  if (item.prompt.empty()) refuse("an empty prompt; expected at least one token");
  if (item.max_tokens < 1) refuse("max_tokens " + std::to_string(item.max_tokens) + "; expected at least 1");
  if (const std::string fault = fault_of(item.sampling); !fault.empty()) refuse(fault);
  const std::int64_t tokens = static_cast<std::int64_t>(item.prompt.size()) + item.max_tokens;
  if (tokens > cache_->capacity())
    refuse(std::to_string(tokens) + " tokens with its continuation; expected at most " +
           std::to_string(cache_->capacity()));
}

// All of the prompt but its last token, which the first step decodes.
void Generator::admit(std::int32_t index, const GenerationItem& item) {
  const auto start = std::chrono::steady_clock::now();
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  slot = Slot();
  slot.item = &item;
  slot.stops.emplace(tokenizer_, item.stops);
  slot.next.assign(arms_.size(), item.prompt.back());
  slot.ended.assign(arms_.size(), false);
  slot.sequences.resize(arms_.size());
  cache_->reset_slot(index);
  const auto tokens = static_cast<std::int64_t>(item.prompt.size()) - 1;
  if (prompts_) {
    prefill_slot(model_, std::span(item.prompt).first(static_cast<std::size_t>(tokens)), options_.block, *prompts_,
                 *cache_, index);
  } else {
    for (std::int64_t begin = 0; begin < tokens; begin += options_.block)
      model_.forward(row_of(item.prompt, begin, std::min(options_.block, tokens - begin)), *cache_,
                     Mode::teacher_forced, nullptr, nullptr, {index});
  }
  costs_.prompt_tokens += tokens;
  costs_.prompt_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Generator::take(Slot& slot, std::size_t arm, std::int32_t token, bool tie, const Events& events) {
  slot.next[arm] = token;
  if (slot.ended[arm]) return;  // it decodes along until the other arms are done
  ++costs_.generated_tokens;
  GeneratedSequence& sequence = slot.sequences[arm];
  sequence.ties.push_back(tie);
  if (options_.end_tokens.contains(token)) {
    sequence.ending = Ending::end_token;
    slot.ended[arm] = true;
    return;
  }
  sequence.tokens.push_back(token);
  if (events.token) events.token(*slot.item, arm, token);
  const bool stopped = slot.stops->reached(sequence.tokens);
  if (stopped) sequence.ending = Ending::stop;
  slot.ended[arm] = stopped || static_cast<std::int64_t>(sequence.tokens.size()) == slot.item->max_tokens;
}

// hidden: [arms, slots, hidden]; a choice a row.
ChosenTokens Generator::choose(const at::Tensor& hidden, const std::vector<std::int32_t>& live,
                               const std::vector<Choice>& choices, KernelClock* clock) const {
  const KernelClock::Scope scope(clock, "", "head");
  at::Tensor logits = model_.logits(hidden).flatten(0, 1);
  silence_padded_rows(live, hidden.size(0), logits);
  ChosenTokens chosen = choose_tokens(logits, choices, spacing_of(model_.options().compute_dtype));
  if (chosen.not_finite) {
    const Slot& slot = slots_[*chosen.not_finite % slots_.size()];
    throw std::runtime_error("arm '" + arms_[*chosen.not_finite / slots_.size()].name + "', item " +
                             std::to_string(slot.item->item) + ": logits are not finite after " +
                             std::to_string(slot.position) + " generated tokens; expected finite numbers");
  }
  return chosen;
}

void Generator::step(const Events& events, KernelClock* clock) {
  const auto rows = static_cast<std::int64_t>(slots_.size()), arms = static_cast<std::int64_t>(arms_.size());
  std::vector<std::int32_t> live;  // by row: its slot, or less than 0
  std::vector<std::int64_t> ids;
  std::vector<Choice> choices;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& held = slots_[slot];
    live.push_back(held.item != nullptr ? static_cast<std::int32_t>(slot) : -1);
    Choice& choice = choices.emplace_back();
    if (held.item == nullptr || !held.item->sampling.draws()) continue;
    choice.sampling = held.item->sampling;
    choice.uniform = uniform_of({options_.seed, static_cast<std::uint64_t>(held.item->item),
                                 static_cast<std::uint64_t>(held.item->repeat), held.position});
  }
  for (std::size_t arm = 0; arm < arms_.size(); ++arm)
    for (const Slot& slot : slots_) ids.push_back(slot.item != nullptr ? slot.next[arm] : 0);
  choices.reserve(ids.size());
  for (std::size_t row = slots_.size(); row < ids.size(); ++row) choices.push_back(choices[row - slots_.size()]);
  const at::Tensor input = at::tensor(ids, at::kLong).view({arms, rows, 1});
  const at::Tensor hidden = model_.forward(input, *cache_, Mode::stepwise, clock, nullptr, live);
  const ChosenTokens chosen = choose(hidden.select(2, 0), live, choices, clock);
  ++costs_.steps;
  std::int64_t served = 0;
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_[index];
    if (slot.item == nullptr) continue;
    ++served;
    for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
      const std::size_t row = arm * slots_.size() + index;
      take(slot, arm, chosen.tokens[row], chosen.ties[row], events);
    }
    ++slot.position;
    if (!slot.done()) continue;
    events.done(*slot.item, std::move(slot.sequences));
    slot.item = nullptr;
  }
  costs_.decoded_tokens += served;
  if (events.stepped) events.stepped(served);
}

void Generator::run(const std::vector<GenerationItem>& items, const Events& events, KernelClock* clock) {
  for (const GenerationItem& item : items) check(item);
  for (Slot& slot : slots_) slot.item = nullptr;  // an earlier run may have ended in an exception
  std::size_t next = 0;
  const auto anyone = [this] {
    return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.item != nullptr; });
  };
  while (next < items.size() || anyone()) {
    for (std::size_t slot = 0; slot < slots_.size() && next < items.size(); ++slot)
      if (slots_[slot].item == nullptr) admit(static_cast<std::int32_t>(slot), items[next++]);
    step(events, clock);
  }
}

StorageTotals Generator::storage_counts() const { return counts_of(*cache_); }

}  // namespace replayeval
