#include "eval/comparator/perplexity_pass.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "eval/comparator/baseline/baseline_keeper.h"
#include "eval/comparator/prompt.h"

namespace replayeval {
namespace {

// Logits of all arms, at once: on a GPU enough rows that their product is no smaller work than reading the head.
std::int64_t logits_bytes(DeviceKind device) { return std::int64_t{device == DeviceKind::cuda ? 1024 : 96} << 20; }

at::Tensor ids_of(const std::vector<datasets::Window>& windows) {
  const std::int64_t length = windows.front().input_count();
  at::Tensor ids = at::empty({static_cast<std::int64_t>(windows.size()), length}, at::kLong);
  auto* at = ids.mutable_data_ptr<std::int64_t>();
  for (const datasets::Window& window : windows) at = std::copy_n(window.tokens.begin(), length, at);
  return ids;
}

std::vector<std::string> names_of(const std::vector<Arm>& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name);
  return names;
}

// Rows of `hidden` whose predictions count, and their tokens' entries in the shard.
std::vector<std::int64_t> scored_rows(const std::vector<datasets::Window>& windows, std::int64_t begin,
                                      std::int64_t tokens, TokenRecords& records) {
  std::vector<std::int64_t> rows;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const datasets::Window& window = windows[w];
    for (std::int64_t t = std::max(begin, window.first_scored - 1); t < begin + tokens; ++t) {
      rows.push_back(static_cast<std::int64_t>(w) * tokens + t - begin);
      records.document.push_back(window.document);
      records.position.push_back(window.offset + t + 1);
      records.window_position.push_back(t + 1);
      records.target.push_back(window.tokens[static_cast<std::size_t>(t + 1)]);
    }
  }
  return rows;
}

}  // namespace

PerplexityPass::PerplexityPass(const RunContext& context, const WorkloadConfig& workload,
                               const std::vector<datasets::DocumentInfo>& documents,
                               std::shared_ptr<const StoredWorkload> stored)
    : context_(context), workload_(workload), documents_(documents), stored_(std::move(stored)) {
  if (stored_ && context.against->form() == BaselineForm::hidden) pairs_ = context.against->pairs(context.arms);
  const std::size_t arms = context.arms.size() + (pairs_.empty() ? 0 : context.against->arm_count());
  const std::int64_t row_bytes = static_cast<std::int64_t>(arms * sizeof(float)) * context.model.vocab_size();
  rows_per_chunk_ = std::max<std::int64_t>(1, logits_bytes(context_.model.options().device) / row_bytes);
}

PerplexityPass::Scores PerplexityPass::make_scores() const {
  const Dtype dtype = context_.model.options().compute_dtype;
  Scores scores{{names_of(context_.arms), context_.baseline, dtype}, {}, 0};
  for (const StoredPair& pair : pairs_)
    scores.pairs.emplace_back(
        std::vector<std::string>{context_.against->arm_name(pair.stored) + ", stored", context_.arms[pair.arm].name},
        std::size_t{0}, dtype);
  return scores;
}

DecodeCache& PerplexityPass::cache_for(std::int64_t slots) {
  if (!cache_ || cache_->slots() != slots) {
    cache_.reset();  // the old one's memory goes first
    cache_ = context_.model.make_cache(context_.arms, slots, workload_.context);
  }
  cache_->reset();
  return *cache_;
}

void PerplexityPass::prefill(const at::Tensor& ids, DecodeCache& cache, KernelClock& clock) {
  const KernelClock::Scope scope(&clock, "", "prefill");  // as a whole: no arm's work
  if (!prompts_ || prompts_->slots() != ids.size(0))
    prompts_ = context_.model.make_cache({prefill_arm()}, ids.size(0), ids.size(1));
  prefill_slots(context_.model, ids, workload_.block, *prompts_, cache);
}

Shard PerplexityPass::run(const std::vector<datasets::Window>& windows) {
  const auto start = std::chrono::steady_clock::now();
  const at::Tensor ids = ids_of(windows);
  DecodeCache& cache = cache_for(ids.size(0));
  const auto counts_before = counts_of(cache);
  KernelClock clock(context_.model.options().device);
  Scores scores = make_scores();
  if (context_.keeper != nullptr) kept_ = context_.keeper->empty_rows();
  Shard shard;
  const std::int64_t prompt = workload_.prefill_tokens;
  if (prompt > 0) prefill(ids.narrow(1, 0, prompt), cache, clock);
  for (std::int64_t begin = prompt; begin < ids.size(1); begin += workload_.block) {
    const std::int64_t tokens = std::min(workload_.block, ids.size(1) - begin);
    const at::Tensor hidden = context_.model.forward(ids.narrow(1, begin, tokens), cache, workload_.mode, &clock);
    score(hidden, windows, begin, scores, shard, clock);
  }
  finish(scores, shard.tokens);
  for (std::size_t arm = 0; arm < context_.arms.size(); ++arm) shard.tokens.arms.push_back(scores.arms.tokens(arm));
  for (const metrics::DivergenceAccumulator& pair : scores.pairs) {
    shard.tokens.stored.push_back(pair.tokens(0));
    shard.tokens.against.push_back(pair.tokens(1));
  }
  shard.decoded_tokens = ids.numel() - ids.size(0) * prompt;
  shard.kernel_seconds = clock.totals();
  shard.storage_counts = counts_since(counts_of(cache), counts_before);
  shard.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return shard;
}

void PerplexityPass::score(const at::Tensor& hidden, const std::vector<datasets::Window>& windows, std::int64_t begin,
                           Scores& scores, Shard& shard, KernelClock& clock) {
  const std::size_t first_token = shard.tokens.size();
  std::vector<std::int64_t> rows = scored_rows(windows, begin, hidden.size(2), shard.tokens);
  if (rows.empty()) return;
  const auto count = static_cast<std::int64_t>(rows.size());
  const at::Tensor index = at::from_blob(rows.data(), {count}, at::kLong).to(hidden.device());
  const at::Tensor flat = hidden.flatten(1, 2);
  for (std::int64_t row = 0; row < count; row += rows_per_chunk_) {
    const std::int64_t chunk = std::min(rows_per_chunk_, count - row);
    const at::Tensor chosen = flat.index_select(1, index.narrow(0, row, chunk));
    if (context_.keeper != nullptr && context_.keeper->keeps_hidden()) {
      const KernelClock::Scope scope(&clock, "", "metrics");
      context_.keeper->append(kept_, chosen);
    }
    const std::size_t token = first_token + static_cast<std::size_t>(row);
    at::Tensor logits;
    at_token(token, shard.tokens, [&] { logits = logits_of(chosen, token, shard.tokens, clock); });
    finish(scores, shard.tokens);
    at_token(token, shard.tokens, [&] { this->begin(logits, token, scores, shard.tokens, clock); });
  }
}

void PerplexityPass::at_token(std::size_t token, const TokenRecords& tokens, const std::function<void()>& f) const {
  try {
    f();
  } catch (const std::runtime_error& error) {
    const std::int64_t number = tokens.document[token];
    const datasets::DocumentInfo& document = documents_.at(static_cast<std::size_t>(number));
    throw std::runtime_error(
        fmt::format("workload '{}', document {} ('{}' of source '{}'), predictions from token {} on: {}",
                    workload_.name, number, document.id, document.source, tokens.position[token], error.what()));
  }
}

at::Tensor PerplexityPass::logits_of(const at::Tensor& hidden, std::size_t first_token, const TokenRecords& tokens,
                                     KernelClock& clock) const {
  at::Tensor rows = hidden;
  if (!pairs_.empty()) {
    // In one product with the arms' own: what has not changed then has equal logits, to the bit.
    const auto places = stored_->find(tokens, first_token, static_cast<std::size_t>(hidden.size(1)));
    rows = at::cat({hidden, stored_->hidden(places).to(hidden.options())});
  }
  const KernelClock::Scope scope(&clock, "", "head");
  return context_.model.logits(rows);
}

void PerplexityPass::begin(const at::Tensor& logits, std::size_t first_token, Scores& scores,
                           const TokenRecords& tokens, KernelClock& clock) const {
  const KernelClock::Scope scope(&clock, "", "metrics");
  const auto arms = static_cast<std::int64_t>(context_.arms.size());
  const at::Tensor targets = at::empty({logits.size(1)}, at::kLong);
  std::copy_n(tokens.target.begin() + static_cast<std::ptrdiff_t>(first_token), targets.size(0),
              targets.mutable_data_ptr<std::int64_t>());
  std::vector<at::Tensor> own;
  for (std::int64_t arm = 0; arm < arms; ++arm) own.push_back(logits[arm]);
  scores.begun = first_token;
  scores.arms.begin(own, targets);
  for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
    const std::array both = {logits[arms + pairs_[pair].stored], logits[static_cast<std::int64_t>(pairs_[pair].arm)]};
    scores.pairs[pair].begin(both, targets);
  }
}

void PerplexityPass::finish(Scores& scores, const TokenRecords& tokens) const {
  if (tokens.size() == 0) return;
  at_token(scores.begun, tokens, [&] {
    scores.arms.finish();
    for (metrics::DivergenceAccumulator& pair : scores.pairs) pair.finish();
  });
}

}  // namespace replayeval
