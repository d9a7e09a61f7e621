#include "eval/comparator/recall/recall_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "eval/comparator/estimates.h"
#include "eval/comparator/interrupt.h"
#include "eval/comparator/length_warning.h"
#include "eval/comparator/part_left.h"
#include "eval/comparator/perplexity_summary.h"
#include "eval/comparator/probed_sequences.h"
#include "eval/comparator/progress.h"
#include "eval/comparator/recall/recall_pass.h"
#include "eval/comparator/recall/recall_shard.h"
#include "eval/metrics/paired_accuracy.h"

namespace replayeval {
namespace {

// Answers of some documents, by arm; item[i] is the document that answer i belongs to.
struct Answered {
  std::vector<std::vector<std::uint8_t>> right;
  std::vector<std::int64_t> item;
  double chance = 0.0;  // summed over documents

  void append(const Answered& other) {
    right.resize(other.right.size());
    const std::int64_t offset = item.empty() ? 0 : item.back() + 1;
    for (std::size_t arm = 0; arm < right.size(); ++arm)
      right[arm].insert(right[arm].end(), other.right[arm].begin(), other.right[arm].end());
    for (const std::int64_t document : other.item) item.push_back(offset + document);
    chance += other.chance;
  }
};

// Documents of a cell that fit a batch of some 32k (GPU) or 4k (CPU) rows over all arms.
std::int64_t batch_of(const RunContext& context, const WorkloadConfig& workload) {
  if (workload.batch) return *workload.batch;
  const std::int64_t rows = context.model.options().device == DeviceKind::cuda ? 32768 : 4096;
  return std::max<std::int64_t>(1, rows / (workload.block * static_cast<std::int64_t>(context.arms.size())));
}

RecallShard answer_part(const RunContext& context, const WorkloadConfig& workload, datasets::RecallTask& task,
                        const datasets::RecallCell& cell, std::int64_t begin, std::int64_t end) {
  const auto start = std::chrono::steady_clock::now();
  RecallShard part;
  std::vector<datasets::RecallItem> items;
  for (std::int64_t index = begin; index < end; ++index) {
    items.push_back(task.item(cell, index));
    part.chance += items.back().chance;
    part.item.insert(part.item.end(), items.back().answers.size(), index);
  }
  KernelClock clock(context.model.options().device);
  RecallPass pass(context, workload);
  part.right = pass.run(items, clock);
  part.costs.decoded_tokens = pass.decoded_tokens();
  part.costs.kernel_seconds = clock.totals();
  part.costs.storage_counts = pass.storage_counts();
  part.costs.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return part;
}

// Cell after cell of all tasks, batch by batch; every batch is a part of the work of its own.
class RecallParts {
 public:
  RecallParts(const RunContext& context, const WorkloadConfig& workload, std::filesystem::path folder,
              Progress& progress)
      : context_(context), workload_(workload), folder_(std::move(folder)), progress_(progress) {}

  Answered answer(datasets::RecallTask& task, const datasets::RecallCell& cell) {
    Answered answered;
    answered.right.resize(context_.arms.size());
    const std::int64_t count = task.spec().items, batch = batch_of(context_, workload_);
    for (std::int64_t begin = 0; begin < count; begin += batch) {
      const std::int64_t end = std::min(count, begin + batch);
      const RecallShard part = next(task, cell, begin, end);
      for (std::size_t arm = 0; arm < part.right.size(); ++arm)
        answered.right[arm].insert(answered.right[arm].end(), part.right[arm].begin(), part.right[arm].end());
      answered.item.insert(answered.item.end(), part.item.begin(), part.item.end());
      answered.chance += part.chance;
      add_costs(costs_, part.costs);
    }
    return answered;
  }

  const Shard& costs() const { return costs_; }

 private:
  // Read back, or computed and stored.
  RecallShard next(datasets::RecallTask& task, const datasets::RecallCell& cell, std::int64_t begin, std::int64_t end) {
    const std::int64_t index = index_++, tokens = cell.length * (end - begin);
    const std::optional<RecallShard> left =
        part_left(folder_, index, progress_, [&] { return load_recall_shard(folder_, index, context_.arms.size()); });
    if (left) {
      progress_.skip(tokens);
      return *left;
    }
    progress_.start();
    stop_if_asked();
    RecallShard part = answer_part(context_, workload_, task, cell, begin, end);
    save_recall_shard(folder_, index, part);
    progress_.add(tokens);
    return part;
  }

  const RunContext& context_;
  const WorkloadConfig& workload_;
  std::filesystem::path folder_;
  Progress& progress_;
  std::int64_t index_ = 0;  // of the next part
  Shard costs_;
};

reports::RecallCell describe_cell(const RunContext& context, const datasets::RecallTask& task,
                                  const datasets::RecallCell& cell, const Answered& answered) {
  reports::RecallCell row;
  row.task = task.spec().name;
  row.kind = task.spec().kind;
  row.length = cell.length;
  row.depth = cell.depth;
  row.documents = task.spec().items;
  row.chance = answered.chance / static_cast<double>(row.documents);
  const auto& baseline = answered.right[context.baseline];
  const double confidence = context.config.confidence;
  row.signal = metrics::chance_p_value(baseline, answered.item, row.chance, confidence) < 1.0 - confidence;
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    const std::string& name = context.arms[arm].name;
    row.accuracy[name] = metric_of(metrics::accuracy(answered.right[arm], answered.item, confidence));
    if (arm != context.baseline)
      row.delta[name] =
          delta_of(metrics::paired_accuracy(baseline, answered.right[arm], answered.item, confidence).delta);
  }
  return row;
}

// Over the cells with a signal; nothing where there is none.
void pool(const RunContext& context, const std::string& task, const Answered& all, reports::Workload& result) {
  if (all.item.empty()) return;
  const std::string metric = "accuracy/" + task;
  const double confidence = context.config.confidence;
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    const std::string& name = context.arms[arm].name;
    result.arms[name].metrics[metric] = metric_of(metrics::accuracy(all.right[arm], all.item, confidence));
    if (arm != context.baseline)
      result.deltas[name][metric] =
          delta_of(metrics::paired_accuracy(all.right[context.baseline], all.right[arm], all.item, confidence).delta);
  }
}

// Of each task in turn a document of `longest` tokens, so that several kinds and depths speak.
ProbedSequences probe_documents(const WorkloadConfig& workload, std::vector<datasets::RecallTask>& tasks,
                                std::int64_t longest) {
  ProbedSequences sequences;
  const auto wanted = static_cast<std::size_t>(workload.state_error->sequences);
  bool any_left = true;
  for (std::int64_t turn = 0; any_left && sequences.size() < wanted; ++turn) {
    any_left = false;
    for (datasets::RecallTask& task : tasks) {
      std::vector<datasets::RecallCell> cells = task.cells();
      std::erase_if(cells, [&](const datasets::RecallCell& cell) { return cell.length != longest; });
      const auto count = static_cast<std::int64_t>(cells.size());
      if (turn >= count * task.spec().items || sequences.size() == wanted) continue;
      any_left = true;
      const datasets::RecallItem item = task.item(cells[static_cast<std::size_t>(turn % count)], turn / count);
      sequences.emplace_back(item.tokens.begin(), item.tokens.end());
    }
  }
  return sequences;
}

}  // namespace

std::vector<datasets::RecallTask> open_recall(const WorkloadConfig& workload,
                                              const std::shared_ptr<const datasets::Tokenizer>& tokenizer) {
  std::vector<datasets::RecallTask> tasks;
  for (const RecallConfig& task : workload.recall) tasks.emplace_back(task.spec, tokenizer, task.root);
  return tasks;
}

void check_recall(const WorkloadConfig& workload, std::vector<datasets::RecallTask>& tasks) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    try {
      tasks[i].check_lengths();
    } catch (const datasets::DataError& error) {
      throw ConfigError(workload.recall[i].place + ": " + error.what());
    }
  }
}

reports::Workload run_recall(const RunContext& context, const WorkloadConfig& workload,
                             const std::filesystem::path& shards) {
  std::vector<datasets::RecallTask> tasks = open_recall(workload, context.tokenizer);
  std::int64_t tokens = 0, longest = 0;
  for (const datasets::RecallTask& task : tasks) {
    for (const datasets::RecallCell& cell : task.cells()) {
      tokens += cell.length * task.spec().items;
      longest = std::max(longest, cell.length);
    }
  }
  Progress progress(workload.name, tokens, context.quiet);
  const std::optional<std::string> warning = length_warning(context.model, longest);
  if (warning) progress.note(fmt::format("replayeval: warning: workload '{}': {}", workload.name, *warning));
  RecallParts parts(context, workload, shards, progress);
  reports::Workload result;
  result.name = workload.name;
  result.kind = workload.kind;
  result.data = {
      {"mode", mode_name(workload.mode)}, {"prompt", prompt_name(workload.prompt)}, {"tasks", nlohmann::json::array()}};
  if (warning) result.data["warnings"] = nlohmann::json::array({*warning});
  for (datasets::RecallTask& task : tasks) {
    result.data["tasks"].push_back(task.describe());
    Answered with_signal;
    for (const datasets::RecallCell& cell : task.cells()) {
      const Answered answered = parts.answer(task, cell);
      result.recall.push_back(describe_cell(context, task, cell, answered));
      if (result.recall.back().signal) with_signal.append(answered);
    }
    pool(context, task.spec().name, with_signal, result);
  }
  progress.finish();
  result.data["tokens_decoded"] = parts.costs().decoded_tokens;
  summarise_costs(context, parts.costs(), result);
  describe_memory(context, result);
  if (workload.state_error) probe_states(context, workload, probe_documents(workload, tasks, longest), result);
  return result;
}

}  // namespace replayeval
