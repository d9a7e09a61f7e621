#include "eval/comparator/tasks/continuation_scorer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "eval/comparator/interrupt.h"
#include "eval/comparator/prompt.h"

namespace replayeval {
namespace {

constexpr std::int64_t logits_bytes = std::int64_t{96} << 20;  // of all arms, at once

std::int64_t inputs_of(const Continuation& request) { return static_cast<std::int64_t>(request.tokens.size()) - 1; }

void check(std::span<const Continuation> requests, std::int64_t max_positions) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Continuation& request = requests[i];
    const std::int64_t inputs = inputs_of(request);
    const auto refuse = [&](const std::string& what) {
      throw std::invalid_argument("request " + std::to_string(i) + ": " + what);
    };
    if (inputs < 1) refuse(std::to_string(inputs + 1) + " tokens; expected a context and a continuation");
    if (request.scored < 1 || request.scored > inputs)
      refuse(std::to_string(request.scored) + " tokens to score of " + std::to_string(inputs + 1) +
             "; expected at least 1 and all but the first at most");
    if (inputs > max_positions)
      refuse(std::to_string(inputs) + " tokens; expected at most the model's " + std::to_string(max_positions) +
             " positions");
  }
}

// What a prompt computed apart holds: every token of the context but the last.
std::span<const std::int32_t> prompt_of(const Continuation& request) {
  return std::span(request.tokens).first(static_cast<std::size_t>(inputs_of(request) - request.scored));
}

// The distinct requests, longest first, so that a batch pads little; where prompts are computed apart, the longest
// prompt first and those of one prompt together, so that it is computed once.
std::vector<const Continuation*> distinct(std::span<const Continuation> requests, bool by_prompt) {
  std::vector<const Continuation*> order;
  for (const Continuation& request : requests) order.push_back(&request);
  std::stable_sort(order.begin(), order.end(), [&](const Continuation* a, const Continuation* b) {
    if (by_prompt) {
      const auto left = prompt_of(*a), right = prompt_of(*b);
      if (left.size() != right.size()) return left.size() > right.size();
      if (!std::ranges::equal(left, right)) return std::ranges::lexicographical_compare(left, right);
    }
    if (a->tokens.size() != b->tokens.size()) return a->tokens.size() > b->tokens.size();
    return std::tie(a->tokens, a->scored) < std::tie(b->tokens, b->scored);
  });
  const auto same = [](const Continuation* a, const Continuation* b) {
    return a->scored == b->scored && a->tokens == b->tokens;
  };
  order.erase(std::unique(order.begin(), order.end(), same), order.end());
  return order;
}

// Tokens begins[row] … begins[row] + tokens of every sequence; zeros behind its end.
at::Tensor block_of(const std::vector<const Continuation*>& batch, const std::vector<std::int64_t>& begins,
                    std::int64_t tokens) {
  std::vector<std::int64_t> ids;
  for (std::size_t row = 0; row < batch.size(); ++row)
    for (std::int64_t t = begins[row]; t < begins[row] + tokens; ++t)
      ids.push_back(t < inputs_of(*batch[row]) ? batch[row]->tokens[static_cast<std::size_t>(t)] : 0);
  return at::tensor(ids, at::kLong).view({static_cast<std::int64_t>(batch.size()), tokens});
}

}  // namespace

ContinuationScorer::ContinuationScorer(const Model& model, std::vector<Arm> arms, ScorerOptions options)
    : model_(model), arms_(std::move(arms)), options_(options) {
  if (options_.block < 1 || options_.call_tokens < 1)
    throw std::invalid_argument("continuation scorer: a block or batch below 1; expected at least one token");
}

std::vector<std::vector<ContinuationScore>> ContinuationScorer::run(std::span<const Continuation> requests,
                                                                    const std::function<void(std::int64_t)>& progress,
                                                                    KernelClock* clock) {
  check(requests, model_.max_positions());
  const std::vector<const Continuation*> order = distinct(requests, options_.prefill);
  std::map<std::pair<std::vector<std::int32_t>, std::int64_t>, std::vector<ContinuationScore>> known;
  std::size_t begin = 0;
  while (begin < order.size()) {
    const std::int64_t rows =
        std::max<std::int64_t>(1, options_.call_tokens / std::min(options_.block, inputs_of(*order[begin])));
    const std::size_t end = std::min(order.size(), begin + static_cast<std::size_t>(rows));
    const std::vector<const Continuation*> batch(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 order.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<std::vector<ContinuationScore>> scores = run_batch(batch, clock);
    for (std::size_t row = 0; row < batch.size(); ++row)
      known[{batch[row]->tokens, batch[row]->scored}] = std::move(scores[row]);
    progress(static_cast<std::int64_t>(batch.size()));
    begin = end;
  }
  std::vector<std::vector<ContinuationScore>> all;
  for (const Continuation& request : requests) all.push_back(known.at({request.tokens, request.scored}));
  return all;
}

// Every context but its last token, sequence by sequence, into the arms' caches. Sequences of one context (the choices
// of a question) stand together, and it is computed once.
void ContinuationScorer::prefill(const std::vector<const Continuation*>& batch, DecodeCache& cache,
                                 KernelClock* clock) const {
  const KernelClock::Scope scope(clock, "", "prefill");  // as a whole: no arm's work
  const auto prompts = model_.make_cache({prefill_arm()}, 1, cache.capacity());
  for (std::size_t row = 0; row < batch.size(); ++row) {
    const std::span<const std::int32_t> tokens = prompt_of(*batch[row]);
    const auto slot = static_cast<std::int64_t>(row);
    if (row > 0 && !tokens.empty() && std::ranges::equal(tokens, prompt_of(*batch[row - 1])))
      cache.store_prefilled(slot, *prompts, 0);
    else
      prefill_slot(model_, tokens, options_.block, *prompts, cache, slot);
  }
}

std::vector<std::vector<ContinuationScore>> ContinuationScorer::run_batch(const std::vector<const Continuation*>& batch,
                                                                          KernelClock* clock) {
  const auto rows = static_cast<std::int64_t>(batch.size());
  std::int64_t left = 0, longest_scored = 0;
  for (const Continuation* request : batch) {
    left = std::max(left, inputs_of(*request));
    longest_scored = std::max(longest_scored, request->scored);
  }
  // With prompts computed apart, rows begin at their own ends and are padded to the longest continuation.
  const auto cache = model_.make_cache(arms_, rows, left + (options_.prefill ? longest_scored : 0));
  std::vector<std::int64_t> begins(batch.size(), 0);
  if (options_.prefill) {
    prefill(batch, *cache, clock);
    left = 0;
    for (std::size_t row = 0; row < batch.size(); ++row) {
      begins[row] = cache->position(static_cast<std::int64_t>(row));
      left = std::max(left, inputs_of(*batch[row]) - begins[row]);
    }
  }
  std::vector<std::vector<ContinuationScore>> scores(batch.size(), std::vector<ContinuationScore>(arms_.size()));
  for (auto& row : scores)
    for (ContinuationScore& score : row) score.greedy = true;
  const std::vector<std::int64_t> first(begins);
  while (left > 0) {
    stop_if_asked();
    const std::int64_t tokens = std::min(options_.block, left);
    const at::Tensor hidden = model_.forward(block_of(batch, begins, tokens), *cache, options_.mode, clock);
    score_block(batch, hidden, begins, scores, clock);
    for (std::int64_t& begin : begins) begin += tokens;
    left -= tokens;
  }
  add_costs(batch, first, *cache);
  return scores;
}

void ContinuationScorer::add_costs(const std::vector<const Continuation*>& batch,
                                   const std::vector<std::int64_t>& begins, const DecodeCache& cache) {
  for (std::size_t row = 0; row < batch.size(); ++row) costs_.decoded_tokens += inputs_of(*batch[row]) - begins[row];
  add_counts(costs_.storage_counts, counts_of(cache));
}

// hidden: [arms, rows, tokens, hidden], of the tokens from begins[row] on.
void ContinuationScorer::score_block(const std::vector<const Continuation*>& batch, const at::Tensor& hidden,
                                     const std::vector<std::int64_t>& begins,
                                     std::vector<std::vector<ContinuationScore>>& scores, KernelClock* clock) const {
  const std::int64_t tokens = hidden.size(2);
  std::vector<std::int64_t> places, targets, owners;
  for (std::size_t row = 0; row < batch.size(); ++row) {
    const std::int64_t inputs = inputs_of(*batch[row]), first = inputs - batch[row]->scored;
    for (std::int64_t t = std::max(first, begins[row]); t < std::min(inputs, begins[row] + tokens); ++t) {
      places.push_back(static_cast<std::int64_t>(row) * tokens + t - begins[row]);
      targets.push_back(batch[row]->tokens[static_cast<std::size_t>(t) + 1]);
      owners.push_back(static_cast<std::int64_t>(row));
    }
  }
  const auto count = static_cast<std::int64_t>(places.size());
  const std::int64_t row_bytes = static_cast<std::int64_t>(arms_.size() * sizeof(float)) * model_.vocab_size();
  const std::int64_t chunk = std::max<std::int64_t>(1, logits_bytes / row_bytes);
  const at::Tensor flat = hidden.flatten(1, 2);
  for (std::int64_t begin = 0; begin < count; begin += chunk) {
    const std::int64_t n = std::min(chunk, count - begin);
    const KernelClock::Scope scope(clock, "", "head");
    const at::Tensor at_rows = at::from_blob(places.data() + begin, {n}, at::kLong).to(hidden.device());
    const at::Tensor wanted = at::from_blob(targets.data() + begin, {n}, at::kLong).to(hidden.device());
    const at::Tensor logits = model_.logits(flat.index_select(1, at_rows));
    if (!at::isfinite(logits).all().item<bool>())
      throw std::runtime_error("logits are not finite; expected finite numbers");
    for (std::int64_t arm = 0; arm < logits.size(0); ++arm) {  // equal arms on equal shapes
      const at::Tensor log_probs = at::log_softmax(logits[arm], -1).gather(1, wanted.unsqueeze(1)).squeeze(1).cpu();
      const at::Tensor best = logits[arm].argmax(-1).eq(wanted).cpu();
      for (std::int64_t i = 0; i < n; ++i) {
        ContinuationScore& score = scores[static_cast<std::size_t>(owners[static_cast<std::size_t>(begin + i)])]
                                         [static_cast<std::size_t>(arm)];
        const float log_prob = log_probs.const_data_ptr<float>()[i];
        score.log_likelihood += static_cast<double>(log_prob);
        score.log_probs.push_back(log_prob);
        score.greedy = score.greedy && best.const_data_ptr<bool>()[i];
      }
    }
  }
}

}  // namespace replayeval
