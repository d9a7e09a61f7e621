#include "eval/comparator/generation/generator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "eval/comparator/generation/sampling.h"
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
  if (options_.temperature < 0.0) throw std::invalid_argument("generation: a temperature below 0; expected 0 or more");
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
  const std::int64_t tokens = static_cast<std::int64_t>(item.prompt.size()) + item.max_tokens;
  if (tokens > cache_->capacity())
    refuse(std::to_string(tokens) + " tokens with its continuation; expected at most " +
           std::to_string(cache_->capacity()));
}

// All of the prompt but its last token, which the first step decodes.
void Generator::admit(std::int32_t index, const GenerationItem& item) {
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
    return;
  }
  for (std::int64_t begin = 0; begin < tokens; begin += options_.block)
    model_.forward(row_of(item.prompt, begin, std::min(options_.block, tokens - begin)), *cache_, Mode::teacher_forced,
                   nullptr, nullptr, {index});
}

void Generator::take(Slot& slot, std::size_t arm, std::int32_t token, bool tie) {
  slot.next[arm] = token;
  if (slot.ended[arm]) return;  // it decodes along until the other arms are done
  ++generated_tokens_;
  if (options_.end_tokens.contains(token)) {
    slot.ended[arm] = true;
    return;
  }
  GeneratedSequence& sequence = slot.sequences[arm];
  sequence.tokens.push_back(token);
  sequence.ties.push_back(tie);
  sequence.truncated = static_cast<std::int64_t>(sequence.tokens.size()) == slot.item->max_tokens;
  const bool stopped = slot.stops->reached(sequence.tokens);
  if (stopped) sequence.truncated = false;
  slot.ended[arm] = stopped || sequence.truncated;
}

void Generator::step(const Done& done, KernelClock* clock) {
  std::vector<std::int32_t> live;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    if (slots_[slot].item != nullptr) live.push_back(static_cast<std::int32_t>(slot));
  const auto rows = static_cast<std::int64_t>(live.size()), arms = static_cast<std::int64_t>(arms_.size());
  std::vector<std::int64_t> ids;
  std::vector<double> uniforms;
  for (std::size_t arm = 0; arm < arms_.size(); ++arm)
    for (const std::int32_t index : live) {
      const Slot& slot = slots_[static_cast<std::size_t>(index)];
      ids.push_back(slot.next[arm]);
      uniforms.push_back(uniform_of({options_.seed, static_cast<std::uint64_t>(slot.item->item),
                                     static_cast<std::uint64_t>(slot.item->repeat), slot.position}));
    }
  const at::Tensor input = at::tensor(ids, at::kLong).view({arms, rows, 1});
  const at::Tensor hidden = model_.forward(input, *cache_, Mode::stepwise, clock, nullptr, live);
  const at::Tensor logits = model_.logits(hidden.select(2, 0)).flatten(0, 1);
  const NextTokens chosen =
      choose_tokens(logits, options_.temperature, uniforms, spacing_of(model_.options().compute_dtype));
  const auto* tokens = chosen.tokens.const_data_ptr<std::int64_t>();
  const auto* ties = chosen.ties.const_data_ptr<bool>();
  for (std::size_t arm = 0; arm < arms_.size(); ++arm)
    for (std::size_t row = 0; row < live.size(); ++row) {
      const std::size_t at = arm * live.size() + row;
      take(slots_[static_cast<std::size_t>(live[row])], arm, static_cast<std::int32_t>(tokens[at]), ties[at]);
    }
  ++steps_;
  for (const std::int32_t index : live) {
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    ++slot.position;
    if (!slot.done()) continue;
    done(*slot.item, std::move(slot.sequences));
    slot.item = nullptr;
  }
}

void Generator::run(const std::vector<GenerationItem>& items, const Done& done, KernelClock* clock) {
  for (const GenerationItem& item : items) check(item);
  std::size_t next = 0;
  const auto anyone = [this] {
    return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.item != nullptr; });
  };
  while (next < items.size() || anyone()) {
    for (std::size_t slot = 0; slot < slots_.size() && next < items.size(); ++slot)
      if (slots_[slot].item == nullptr) admit(static_cast<std::int32_t>(slot), items[next++]);
    step(done, clock);
  }
}

}  // namespace replayeval
