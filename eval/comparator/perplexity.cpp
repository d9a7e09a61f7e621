#include "eval/comparator/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "eval/comparator/baseline/baseline_keeper.h"
#include "eval/comparator/baseline/stored_baseline.h"
#include "eval/comparator/baseline/stored_comparison.h"
#include "eval/comparator/interrupt.h"
#include "eval/comparator/length_warning.h"
#include "eval/comparator/perplexity_pass.h"
#include "eval/comparator/perplexity_summary.h"
#include "eval/comparator/probed_sequences.h"
#include "eval/comparator/progress.h"
#include "eval/comparator/window_batches.h"

namespace replayeval {
namespace {

// Rows of a dense product that keep each device busy; more would only take memory.
constexpr std::int64_t cpu_rows = 2048;
constexpr std::int64_t cuda_rows = 32768;

// What an earlier run left of this part. A damaged shard is said to be so, and taken for none; one without the hidden
// states that are to be kept is of no use.
std::optional<Shard> shard_left(const RunContext& context, const std::filesystem::path& folder, std::int64_t index,
                                std::size_t pairs, Progress& progress) {
  if (!has_shard(folder, index)) return std::nullopt;
  try {
    Shard shard = load_shard(folder, index, context.arms.size(), pairs);
    const bool hidden = context.keeper != nullptr && context.keeper->keeps_hidden();
    if (hidden && !context.keeper->has_rows(folder, index, shard.tokens.size())) return std::nullopt;
    return shard;
  } catch (const DamagedShard& damage) {
    progress.note(fmt::format("replayeval: warning: {}; this part is computed again", damage.what()));
    return std::nullopt;
  }
}

// All shards as one.
struct Scored {
  Shard totals;  // its tokens in text order
  TokenOrder order;
};

void announce(const RunContext& context, const WorkloadConfig& workload, std::int64_t tokens, Progress& progress) {
  if (const auto warning = length_warning(context.model, workload.context))
    progress.note(fmt::format("replayeval: warning: workload '{}': {}", workload.name, *warning));
  if (context.keeper != nullptr)
    progress.note(fmt::format("replayeval: workload '{}': the baseline that is kept takes {}", workload.name,
                              context.keeper->size_text(tokens)));
}

// Computed or read back.
Scored run_shards(const RunContext& context, const WorkloadConfig& workload, datasets::WindowReader& reader,
                  const std::shared_ptr<const StoredWorkload>& stored, const std::filesystem::path& folder) {
  PerplexityPass pass(context, workload, reader.documents(), stored);
  WindowBatches batches(reader, workload.context, windows_at_once(context, workload));
  const std::int64_t tokens = reader.count().scored;
  Progress progress(workload.name, tokens, context.quiet);
  announce(context, workload, tokens, progress);
  Scored scored;
  for (std::int64_t index = 0; auto windows = batches.next(); ++index) {
    std::optional<Shard> shard = shard_left(context, folder, index, pass.pairs(), progress);
    if (shard) {
      progress.skip(static_cast<std::int64_t>(shard->tokens.size()));
    } else {
      progress.start();
      stop_if_asked();
      shard = pass.run(*windows);
      if (context.keeper != nullptr && context.keeper->keeps_hidden())
        context.keeper->save_rows(folder, index, pass.kept());
      save_shard(folder, index, *shard);
      progress.add(static_cast<std::int64_t>(shard->tokens.size()));
    }
    add_costs(scored.totals, *shard);
    scored.order.shard_tokens.push_back(shard->tokens.size());
    scored.totals.tokens.append(std::move(shard->tokens));
  }
  progress.finish();
  scored.order.came = scored.totals.tokens.sort_by_text();
  return scored;
}

// Whether it holds what is going to be scored, before that takes its time.
std::shared_ptr<const StoredWorkload> stored_workload(const RunContext& context, const WorkloadConfig& workload,
                                                      const datasets::WindowReader& reader) {
  if (context.against == nullptr) return nullptr;
  auto stored = context.against->workload(workload.name, reader.describe());
  const std::int64_t tokens = reader.count().scored;
  if (static_cast<std::int64_t>(stored->size()) != tokens)
    throw BaselineError(
        fmt::format("workload '{}': the stored baseline holds {} tokens; expected {}, as this run scores",
                    workload.name, stored->size(), tokens));
  return stored;
}

// The windows whose states are probed: the first full-length one of each document in turn, so that several texts speak;
// then, if more are wanted, the documents' later ones. None where state errors are not asked for or there is no text at
// all. Reads `reader` from its beginning and leaves it there.
ProbedSequences probe_windows(const RunContext& context, const WorkloadConfig& workload,
                              datasets::WindowReader& reader) {
  ProbedSequences sequences;
  if (!workload.state_error) return sequences;
  const std::int64_t length = workload.state_error->positions.back();
  std::map<std::pair<std::int64_t, std::int64_t>, datasets::Window> candidates;  // (turn, document)
  std::map<std::int64_t, std::int64_t> turns;
  std::int64_t longest = 0;
  reader.rewind();
  while (std::optional<datasets::Window> window = reader.next()) {
    longest = std::max(longest, window->input_count());
    if (window->input_count() < length) continue;
    const std::pair place(turns[window->document]++, window->document);
    candidates.emplace(place, *std::move(window));
    if (static_cast<std::int64_t>(candidates.size()) > workload.state_error->sequences)
      candidates.erase(std::prev(candidates.end()));
  }
  reader.rewind();
  if (candidates.empty() && longest > 0) refuse_short_sequences(context, workload, "window", longest);
  for (const auto& [place, window] : candidates) sequences.emplace_back(window.tokens.begin(), window.tokens.end() - 1);
  return sequences;
}

}  // namespace

std::int64_t windows_at_once(const RunContext& context, const WorkloadConfig& workload) {
  if (workload.batch) return *workload.batch;
  const std::int64_t rows = context.model.options().device == DeviceKind::cuda ? cuda_rows : cpu_rows;
  const auto arms = static_cast<std::int64_t>(context.arms.size());
  return std::max<std::int64_t>(1, rows / (std::min(workload.block, workload.context) * arms));
}

datasets::WindowReader open_windows(const WorkloadConfig& workload, std::int64_t vocab_size,
                                    const std::shared_ptr<const datasets::Tokenizer>& tokenizer) {
  std::vector<datasets::TokenSource> sources;
  for (const SourceConfig& source : workload.sources) {
    if (source.random_ids)
      sources.emplace_back(datasets::RandomIds(*source.random_ids, vocab_size));
    else
      sources.emplace_back(datasets::TextSource::open(source.text, source.root), tokenizer);
  }
  datasets::WindowOptions options;
  options.context = workload.context;
  options.stride = workload.stride;
  if (workload.bos && tokenizer) options.bos = tokenizer->bos_id();
  options.prompt = workload.prefill_tokens;
  options.max_tokens = workload.max_tokens.value_or(0);
  return {std::move(sources), tokenizer, options};
}

void describe_memory(const RunContext& context, reports::Workload& result) {
  const std::unique_ptr<DecodeCache> one_sequence = context.model.make_cache(context.arms, 1, 1);
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    const SequenceBytes bytes = one_sequence->sequence_bytes(arm);
    reports::ArmResult& described = result.arms[context.arms[arm].name];
    described.state_bytes = bytes.state;
    described.ring_bytes = bytes.ring;
  }
}

reports::Workload run_perplexity(const RunContext& context, const WorkloadConfig& workload,
                                 const WorkloadFolders& folders) {
  datasets::WindowReader reader = open_windows(workload, context.model.vocab_size(), context.tokenizer);
  // First of all: a long run shall not end with the news that no window is long enough.
  const ProbedSequences probed = probe_windows(context, workload, reader);
  const std::shared_ptr<const StoredWorkload> stored = stored_workload(context, workload, reader);
  const Scored scored = run_shards(context, workload, reader, stored, folders.shards);
  const Shard& totals = scored.totals;
  if (totals.tokens.size() == 0) {
    throw std::runtime_error(fmt::format("workload '{}': its sources hold nothing to score", workload.name));
  }
  reports::Workload result;
  result.name = workload.name;
  result.kind = workload.kind;
  result.data = reader.describe();
  if (context.config.random_weights) result.data["weights"] = "random";
  if (const auto warning = length_warning(context.model, workload.context))
    result.data["warnings"] = nlohmann::json::array({*warning});
  result.data["mode"] = mode_name(workload.mode);
  result.data["prompt"] = prompt_name(workload.prompt);
  if (workload.prompt == Prompt::prefill) result.data["prefill_tokens"] = workload.prefill_tokens;
  result.data["tokens_scored"] = totals.tokens.size();
  result.data["tokens_decoded"] = totals.decoded_tokens;
  result.data["documents"] = reader.documents().size();
  write_token_files(context, workload.name, totals.tokens, reader.documents(), folders.tokens);
  if (context.keeper != nullptr) context.keeper->write(workload.name, totals.tokens, scored.order, folders.shards);
  summarise_tokens(context, workload, totals.tokens, result);
  if (stored) compare_with_stored(context, totals.tokens, *stored, result);
  summarise_costs(context, totals, result);
  describe_memory(context, result);
  if (workload.state_error) probe_states(context, workload, probed, result);
  return result;
}

}  // namespace replayeval
