#include "eval/comparator/tasks/task_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "datasets/tasks/sample_writer.h"
#include "datasets/tasks/task_totals.h"
#include "eval/comparator/interrupt.h"
#include "eval/comparator/on_stderr.h"
#include "eval/comparator/part_left.h"
#include "eval/comparator/perplexity_summary.h"
#include "eval/comparator/probed_sequences.h"
#include "eval/comparator/progress.h"
#include "eval/comparator/tasks/continuation_scorer.h"
#include "eval/comparator/tasks/task_generation.h"
#include "eval/comparator/tasks/task_requests.h"
#include "eval/comparator/tasks/task_shard.h"
#include "eval/comparator/tasks/task_summary.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;

// Rows of a dense product that keep each device busy, and input tokens of a part of the work.
constexpr std::int64_t cpu_rows = 2048, cpu_part = std::int64_t{1} << 15;
constexpr std::int64_t cuda_rows = 32768, cuda_part = std::int64_t{1} << 20;

bool on_cuda(const RunContext& context) { return context.model.options().device == DeviceKind::cuda; }

ScorerOptions scorer_options(const RunContext& context, const WorkloadConfig& workload) {
  ScorerOptions options;
  options.mode = workload.mode;
  options.prefill = workload.prompt == Prompt::prefill;
  options.block = workload.block;
  options.call_tokens = std::max<std::int64_t>(
      1, (on_cuda(context) ? cuda_rows : cpu_rows) / static_cast<std::int64_t>(context.arms.size()));
  return options;
}

// Documents of each part: whole ones, so that equal choices are scored together.
std::vector<std::size_t> part_ends(const TaskRequests& task, std::int64_t tokens) {
  std::vector<std::size_t> ends;
  std::int64_t in_part = 0;
  for (std::size_t d = 0; d < task.documents.size(); ++d) {
    for (std::size_t r = task.first[d]; r < task.first[d + 1]; ++r)
      in_part += static_cast<std::int64_t>(task.requests[r].tokens.size());
    if (in_part < tokens && d + 1 < task.documents.size()) continue;
    ends.push_back(d + 1);
    in_part = 0;
  }
  return ends;
}

TaskShard score_part(const RunContext& context, const WorkloadConfig& workload, std::span<const Continuation> requests,
                     Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  KernelClock clock(context.model.options().device);
  ContinuationScorer scorer(context.model, context.arms, scorer_options(context, workload));
  auto left = static_cast<std::int64_t>(requests.size());
  const auto scores = scorer.run(
      requests,
      [&](std::int64_t done) {
        progress.add(done);
        left -= done;
      },
      &clock);
  progress.add(left);  // those that are equal to others
  TaskShard shard;
  for (const auto& request : scores) {
    auto& arms = shard.scores.emplace_back();
    for (const ContinuationScore& score : request) arms.push_back({score.log_likelihood, score.greedy});
  }
  shard.costs.decoded_tokens = scorer.costs().decoded_tokens;
  shard.costs.storage_counts = scorer.costs().storage_counts;
  shard.costs.storage_counts.resize(context.arms.size());
  shard.costs.kernel_seconds = clock.totals();
  shard.costs.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return shard;
}

// All requests' scores, computed or read back.
TaskShard score_all(const RunContext& context, const WorkloadConfig& workload, const TaskRequests& task,
                    const fs::path& folder) {
  Progress progress(workload.name, static_cast<std::int64_t>(task.requests.size()), context.quiet);
  for (const std::string& warning : task.warnings)
    progress.note(fmt::format("replayeval: warning: workload '{}': {}", workload.name, warning));
  TaskShard all;
  std::size_t begin = 0;
  for (std::int64_t index = 0; const std::size_t end : part_ends(task, on_cuda(context) ? cuda_part : cpu_part)) {
    const auto requests = std::span(task.requests).subspan(task.first[begin], task.first[end] - task.first[begin]);
    std::optional<TaskShard> shard = part_left(
        folder, index, progress, [&] { return load_task_shard(folder, index, requests.size(), context.arms.size()); });
    if (shard) {
      progress.skip(static_cast<std::int64_t>(requests.size()));
    } else {
      progress.start();
      stop_if_asked();
      shard = score_part(context, workload, requests, progress);
      save_task_shard(folder, index, *shard);
    }
    all.scores.insert(all.scores.end(), shard->scores.begin(), shard->scores.end());
    add_costs(all.costs, shard->costs);
    begin = end;
    ++index;
  }
  progress.finish();
  return all;
}

using Responses = std::vector<std::vector<tasks::DocumentResponse>>;  // [documents][arms]

Responses responses_of(const TaskRequests& task, const TaskShard& scored, std::size_t arms) {
  Responses responses(task.documents.size());
  for (std::size_t d = 0; d < task.documents.size(); ++d)
    for (std::size_t arm = 0; arm < arms; ++arm) {
      std::vector<tasks::RequestScore> scores;
      for (std::size_t r = task.first[d]; r < task.first[d + 1]; ++r) scores.push_back(scored.scores[r][arm]);
      responses[d].push_back(tasks::response_of(task.documents[d], scores));
    }
  return responses;
}

// What all arms said, and what it cost.
struct Answers {
  Responses responses;
  std::vector<std::vector<tasks::RequestScore>> scores;  // [requests][arms], of tasks that score
  std::optional<TaskTexts> texts;                        // of tasks that generate
  Shard costs;                                           // without tokens
};

Answers ask(const RunContext& context, const WorkloadConfig& workload, const TaskRequests& task,
            const fs::path& shards) {
  Answers answers;
  if (task.documents.front().type == tasks::RequestType::generate_until) {
    answers.texts = generate_task(context, workload, task, shards);
    answers.responses = answers.texts->responses;
    answers.costs = answers.texts->costs;
    return answers;
  }
  TaskShard scored = score_all(context, workload, task, shards);
  answers.responses = responses_of(task, scored, context.arms.size());
  answers.scores = std::move(scored.scores);
  answers.costs = std::move(scored.costs);
  return answers;
}

// What an arm's answers are worth; writes its samples.
tasks::TaskTotals judge(const TaskRequests& task, const tasks::TaskScorer& scorer, const Responses& responses,
                        std::size_t arm, const fs::path& samples) {
  tasks::TaskTotals totals(task.documents.front().type);
  tasks::SampleWriter writer(samples);
  for (std::size_t d = 0; d < task.documents.size(); ++d) {
    const std::vector<tasks::FilterScores> worth = scorer.score(task.documents[d], responses[d][arm]);
    totals.add(worth);
    writer.add(task.documents[d], responses[d][arm], worth);
  }
  writer.finish();
  return totals;
}

nlohmann::json describe(const WorkloadConfig& workload, const tasks::TaskSource& source, const TaskRequests& task,
                        const Shard& costs) {
  nlohmann::json data = {{"sources", {source.describe()}},
                         {"documents", task.documents.size()},
                         {"requests", task.counts.requests},
                         {"tokens_scored", task.counts.scored_tokens},
                         {"tokens_decoded", costs.decoded_tokens},
                         {"mode", mode_name(workload.mode)},
                         {"prompt", prompt_name(workload.prompt)},
                         {"encoding", to_json(task.counts)},
                         {"warnings", task.warnings}};
  if (workload.task->margin) data["margin"] = *workload.task->margin;
  return data;
}

// What a document asks, without the continuation that is scored; of several choices the first one's. Of a rolling text
// all but its last token.
std::span<const std::int32_t> prompt_of(const TaskRequests& task, std::size_t document) {
  if (!task.generations.empty()) return task.generations[document].prompt;
  const Continuation& request = task.requests[task.first[document]];
  const bool rolling = task.documents[document].type == tasks::RequestType::loglikelihood_rolling;
  return std::span(request.tokens)
      .first(request.tokens.size() - (rolling ? 1 : static_cast<std::size_t>(request.scored)));
}

// The first documents' prompts that are long enough. None where state errors are not asked for.
ProbedSequences probe_prompts(const RunContext& context, const WorkloadConfig& workload, const TaskRequests& task) {
  ProbedSequences sequences;
  if (!workload.state_error) return sequences;
  std::size_t longest = 0;
  for (std::size_t d = 0; d < task.documents.size(); ++d) {
    const std::span<const std::int32_t> prompt = prompt_of(task, d);
    longest = std::max(longest, prompt.size());
    if (static_cast<std::int64_t>(prompt.size()) < workload.state_error->positions.back()) continue;
    sequences.emplace_back(prompt.begin(), prompt.end());
    if (static_cast<std::int64_t>(sequences.size()) == workload.state_error->sequences) return sequences;
  }
  if (sequences.empty()) refuse_short_sequences(context, workload, "prompt", static_cast<std::int64_t>(longest));
  return sequences;
}

std::string file_of(const WorkloadConfig& workload) {
  return (workload.task->root / workload.task->source.path).lexically_normal().string();
}

tasks::TaskScorer scorer_of(const WorkloadConfig& workload, const tasks::TaskSource& source) {
  return {source.settings(), file_of(workload)};
}

}  // namespace

tasks::TaskSource open_task(const WorkloadConfig& workload) {
  tasks::TaskSource source = tasks::TaskSource::open(workload.task->source, workload.task->root);
  (void)scorer_of(workload, source);
  const auto refuse_key = [&](const char* key, const char* why) {
    throw ConfigError(
        fmt::format("{}: key '{}': means nothing for {}; expected no such key", workload.task->place, key, why));
  };
  const tasks::RequestType type = *source.settings().type;
  if (workload.task->margin && type == tasks::RequestType::loglikelihood_rolling)
    refuse_key("margin", "loglikelihood_rolling, whose documents are neither right nor wrong");
  if (type != tasks::RequestType::generate_until) {
    const std::string why = fmt::format("{}, which generates nothing", tasks::name_of(type));
    if (workload.batch) refuse_key("batch", why.c_str());
    if (workload.task->seed != 0) refuse_key("seed", why.c_str());
  }
  return source;
}

reports::Workload run_task(const RunContext& context, const WorkloadConfig& workload, const TaskFolders& folders) {
  if (workload.task->margin && context.config.confidence <= 0.5)
    throw ConfigError(fmt::format("{}: workload '{}': margin with a confidence of {}; expected one above 0.5",
                                  context.config.file.string(), workload.name, context.config.confidence));
  const tasks::TaskSource source = open_task(workload);
  const tasks::TaskScorer scorer = scorer_of(workload, source);
  const fs::path& checkpoint = context.config.checkpoint_folder;
  TaskRequests task =
      encode_task(source, file_of(workload), context.tokenizer,
                  fs::is_directory(checkpoint) ? checkpoint : checkpoint.parent_path(), context.model.max_positions());
  for (std::string& warning : source.warnings()) task.warnings.push_back(std::move(warning));
  for (std::string& warning : scorer.warnings()) task.warnings.push_back(std::move(warning));
  const ProbedSequences probed = probe_prompts(context, workload, task);
  const Answers answers = ask(context, workload, task, folders.shards);

  fs::create_directories(folders.samples);
  std::vector<tasks::TaskTotals> totals;
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm)
    totals.push_back(judge(task, scorer, answers.responses, arm,
                           folders.samples / fmt::format("{}.{}.jsonl", workload.name, context.arms[arm].name)));
  reports::Workload result;
  result.name = workload.name;
  result.kind = workload.kind;
  result.data = describe(workload, source, task, answers.costs);
  if (answers.texts) {
    result.data.update(answers.texts->facts);
    result.data.erase("tokens_scored");
  }
  if (context.config.random_weights) result.data["weights"] = "random";
  for (const std::string& warning : summarise_task(context, workload, totals, result)) {
    result.data["warnings"].push_back(warning);
    say("replayeval: warning: workload '{}': {}\n", workload.name, warning);
  }
  if (answers.texts)
    summarise_generation(context, answers.texts->generated, result);
  else
    summarise_requests(context, answers.scores, result);
  summarise_costs(context, answers.costs, result);
  describe_memory(context, result);
  if (workload.state_error) probe_states(context, workload, probed, result);
  return result;
}

}  // namespace replayeval
