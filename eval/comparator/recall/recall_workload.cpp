#include "eval/comparator/recall/recall_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "eval/comparator/estimates.h"
#include "eval/comparator/interrupt.h"
#include "eval/comparator/length_warning.h"
#include "eval/comparator/perplexity_summary.h"
#include "eval/comparator/progress.h"
#include "eval/comparator/recall/recall_pass.h"
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

Answered answer_cell(const RunContext& context, const WorkloadConfig& workload, RecallPass& pass,
                     datasets::RecallTask& task, const datasets::RecallCell& cell, KernelClock& clock) {
  Answered answered;
  answered.right.resize(context.arms.size());
  const std::int64_t count = task.spec().items, batch = batch_of(context, workload);
  for (std::int64_t begin = 0; begin < count; begin += batch) {
    std::vector<datasets::RecallItem> items;
    for (std::int64_t index = begin; index < std::min(count, begin + batch); ++index) {
      items.push_back(task.item(cell, index));
      answered.chance += items.back().chance;
      answered.item.insert(answered.item.end(), items.back().answers.size(), index);
    }
    const std::vector<std::vector<std::uint8_t>> right = pass.run(items, clock);
    for (std::size_t arm = 0; arm < right.size(); ++arm)
      answered.right[arm].insert(answered.right[arm].end(), right[arm].begin(), right[arm].end());
  }
  return answered;
}

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

}  // namespace

std::vector<datasets::RecallTask> open_recall(const WorkloadConfig& workload,
                                              const std::shared_ptr<const datasets::Tokenizer>& tokenizer) {
  std::vector<datasets::RecallTask> tasks;
  for (const RecallConfig& task : workload.recall) tasks.emplace_back(task.spec, tokenizer, task.root);
  return tasks;
}

reports::Workload run_recall(const RunContext& context, const WorkloadConfig& workload) {
  const auto start = std::chrono::steady_clock::now();
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
  progress.start();
  RecallPass pass(context, workload);
  KernelClock clock(context.model.options().device);
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
      if (interrupt_requested()) throw Interrupted("stopped; the same command begins this workload again");
      const Answered answered = answer_cell(context, workload, pass, task, cell, clock);
      result.recall.push_back(describe_cell(context, task, cell, answered));
      if (result.recall.back().signal) with_signal.append(answered);
      progress.add(cell.length * task.spec().items);
    }
    pool(context, task.spec().name, with_signal, result);
  }
  progress.finish();
  result.data["tokens_decoded"] = pass.decoded_tokens();
  Shard costs;
  costs.decoded_tokens = pass.decoded_tokens();
  costs.kernel_seconds = clock.totals();
  costs.storage_counts = pass.storage_counts();
  costs.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  summarise_costs(context, costs, result);
  describe_memory(context, result);
  return result;
}

}  // namespace replayeval
