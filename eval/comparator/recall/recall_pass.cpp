#include "eval/comparator/recall/recall_pass.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "eval/comparator/interrupt.h"
#include "eval/comparator/prompt.h"

namespace replayeval {
namespace {

at::Tensor ids_of(const std::vector<datasets::RecallItem>& items, std::int64_t begin, std::int64_t tokens) {
  std::vector<std::int64_t> ids;
  for (const datasets::RecallItem& item : items)
    ids.insert(ids.end(), item.tokens.begin() + begin, item.tokens.begin() + begin + tokens);
  return at::tensor(ids, at::kLong).view({static_cast<std::int64_t>(items.size()), tokens});
}

}  // namespace

struct RecallPass::Answers {
  std::vector<std::vector<std::uint8_t>> right;  // [arms][answers]
  std::vector<std::size_t> first;                // each item's first answer
};

DecodeCache& RecallPass::new_cache(std::int64_t slots, std::int64_t capacity) {
  cache_ = context_.model.make_cache(context_.arms, slots, capacity);
  return *cache_;
}

StorageTotals RecallPass::storage_counts() const {
  return cache_ ? counts_of(*cache_) : StorageTotals(context_.arms.size());
}

std::vector<std::vector<std::uint8_t>> RecallPass::run(const std::vector<datasets::RecallItem>& items,
                                                       KernelClock& clock) {
  Answers answers;
  std::size_t count = 0;
  for (const datasets::RecallItem& item : items) {
    answers.first.push_back(count);
    count += item.answers.size();
  }
  answers.right.assign(context_.arms.size(), std::vector<std::uint8_t>(count, 1));
  if (workload_.prompt == Prompt::prefill)
    decode_after_prefill(items, answers, clock);
  else
    decode_together(items, answers, clock);
  return answers.right;
}

void RecallPass::decode_together(const std::vector<datasets::RecallItem>& items, Answers& answers, KernelClock& clock) {
  const std::int64_t inputs = items.front().length - 1;
  DecodeCache& cache = new_cache(static_cast<std::int64_t>(items.size()), inputs);
  for (std::int64_t begin = 0; begin < inputs; begin += workload_.block) {
    stop_if_asked();
    const at::Tensor ids = ids_of(items, begin, std::min(workload_.block, inputs - begin));
    look_at(context_.model.forward(ids, cache, workload_.mode, &clock), items, 0, begin, answers, clock);
    decoded_ += ids.numel();
  }
}

// Item by item: the prompt but its last token as servers compute prompts, the rest through the arms.
void RecallPass::decode_after_prefill(const std::vector<datasets::RecallItem>& items, Answers& answers,
                                      KernelClock& clock) {
  const std::int64_t inputs = items.front().length - 1;
  DecodeCache& cache = new_cache(1, inputs);
  const auto prompts = context_.model.make_cache({prefill_arm()}, 1, inputs);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::vector<datasets::RecallItem> one = {items[i]};
    const auto prompt = static_cast<std::int64_t>(items[i].prompt().size()) - 1;
    cache.reset();
    prefill_slot(context_.model, items[i].prompt().first(static_cast<std::size_t>(prompt)), workload_.block, *prompts,
                 cache, 0);
    for (std::int64_t begin = prompt; begin < inputs; begin += workload_.block) {
      stop_if_asked();
      const at::Tensor ids = ids_of(one, begin, std::min(workload_.block, inputs - begin));
      look_at(context_.model.forward(ids, cache, workload_.mode, &clock), one, i, begin, answers, clock);
      decoded_ += ids.numel();
    }
  }
}

// hidden: [arms, items, tokens, hidden], of the tokens from `begin` on.
void RecallPass::look_at(const at::Tensor& hidden, const std::vector<datasets::RecallItem>& items,
                         std::size_t first_item, std::int64_t begin, Answers& answers, KernelClock& clock) const {
  const std::int64_t tokens = hidden.size(2);
  std::vector<std::int64_t> places, targets;
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < items.size(); ++i)
    for (std::size_t a = 0; a < items[i].answers.size(); ++a)
      for (std::int64_t token = items[i].answers[a].begin; token < items[i].answers[a].end; ++token) {
        if (token - 1 < begin || token - 1 >= begin + tokens) continue;
        places.push_back(static_cast<std::int64_t>(i) * tokens + token - 1 - begin);
        targets.push_back(items[i].tokens[static_cast<std::size_t>(token)]);
        owners.push_back(answers.first[first_item + i] + a);
      }
  if (places.empty()) return;
  const KernelClock::Scope scope(&clock, "", "head");
  const at::Tensor index = at::tensor(places, at::kLong).to(hidden.device());
  const at::Tensor logits = context_.model.logits(hidden.flatten(1, 2).index_select(1, index));
  if (!at::isfinite(logits).all().item<bool>())
    throw std::runtime_error(fmt::format("workload '{}', items {} to {}: logits are not finite", workload_.name,
                                         items.front().id, items.back().id));
  const at::Tensor wanted = at::tensor(targets, at::kLong).to(hidden.device());
  for (std::size_t arm = 0; arm < answers.right.size(); ++arm) {
    const at::Tensor right = logits[static_cast<std::int64_t>(arm)].argmax(-1).eq(wanted).cpu();
    for (std::size_t i = 0; i < owners.size(); ++i)
      if (!right.const_data_ptr<bool>()[i]) answers.right[arm][owners[i]] = 0;
  }
}

}  // namespace replayeval
