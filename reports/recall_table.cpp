#include "reports/recall_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "reports/numbers.h"
#include "reports/recall_grid.h"
#include "reports/sections.h"
#include "reports/summary.h"

namespace replayeval::reports {
namespace {

constexpr const char* absent = "–";

// Task names in the order of their first cells.
std::vector<std::string> tasks_of(const Workload& workload) {
  std::vector<std::string> tasks;
  for (const RecallCell& cell : workload.recall)
    if (std::find(tasks.begin(), tasks.end(), cell.task) == tasks.end()) tasks.push_back(cell.task);
  return tasks;
}

const Metric* metric_of(const Workload& workload, const std::string& arm, const std::string& name) {
  const auto found = workload.arms.find(arm);
  if (found == workload.arms.end()) return nullptr;
  const auto metric = found->second.metrics.find(name);
  return metric == found->second.metrics.end() ? nullptr : &metric->second;
}

const Delta* delta_of(const Workload& workload, const std::string& arm, const std::string& name) {
  const auto found = workload.deltas.find(arm);
  if (found == workload.deltas.end()) return nullptr;
  const auto delta = found->second.find(name);
  return delta == found->second.end() ? nullptr : &delta->second;
}

// A share in percent: what spread_text() writes, without the sign of differences.
std::string percent_text(const Metric& share) {
  std::string text = spread_text(spread(share.value, share.low, share.high, 100.0));
  std::erase(text, '+');
  return text;
}

std::string points(const Delta* delta) {
  if (delta == nullptr) return "";
  return spread_text(spread(delta->value, delta->low, delta->high, 100.0));
}

std::string cell_text(const RecallCell& cell, const std::string& arm, const std::string& baseline) {
  const auto found = cell.accuracy.find(arm);
  if (found == cell.accuracy.end()) return absent;
  const double accuracy = found->second.value;
  if (!cell.signal) return fmt::format("{:.1f} (no signal)", 100.0 * accuracy);
  const auto delta = cell.delta.find(arm);
  if (arm == baseline || delta == cell.delta.end()) return fmt::format("{:.1f}", 100.0 * accuracy);
  return fmt::format("{:.1f} ({:+.1f})", 100.0 * accuracy, 100.0 * delta->second.value);
}

// Lengths down, depths across, of one arm.
Table grid(const Workload& workload, const std::string& task, const std::string& arm, const std::string& baseline) {
  std::vector<Text> titles = {"tokens"};
  std::vector<std::optional<double>> depths;
  std::set<std::int64_t> lengths;
  for (const RecallCell& cell : workload.recall) {
    if (cell.task != task) continue;
    lengths.insert(cell.length);
    if (std::find(depths.begin(), depths.end(), cell.depth) == depths.end()) depths.push_back(cell.depth);
  }
  for (const auto& depth : depths) titles.emplace_back("depth " + depth_name(depth));
  Table table(titles);
  for (const std::int64_t length : lengths) {
    std::vector<Text> row = {count_text(length)};
    for (const auto& depth : depths) {
      const auto found = std::find_if(workload.recall.begin(), workload.recall.end(), [&](const RecallCell& cell) {
        return cell.task == task && cell.length == length && cell.depth == depth;
      });
      row.emplace_back(found == workload.recall.end() ? absent : cell_text(*found, arm, baseline));
    }
    table.add_row(row);
  }
  return table;
}

}  // namespace

TextTable recall_table(const Results& results, const Workload& workload) {
  TextTable table({{"task", Align::left, 0},
                   {"arm", Align::left, 0},
                   {"accuracy %", Align::right, 9},
                   {"Δ points", Align::right, 8},
                   {"p", Align::right, 5},
                   {"answers", Align::right, 6}});
  for (const std::string& task : tasks_of(workload)) {
    for (const ArmSummary& arm : summarise(results, workload)) {
      const std::string name = "accuracy/" + task;
      const Metric* accuracy = metric_of(workload, arm.name, name);
      if (accuracy == nullptr) continue;
      const Delta* delta = delta_of(workload, arm.name, name);
      table.add_row({{task},
                     {arm.name + (arm.is_baseline ? " *" : ""), arm.is_baseline ? Tint::bold : Tint::none},
                     {percent_text(*accuracy)},
                     {points(delta)},
                     {delta != nullptr && delta->p_value ? significant(*delta->p_value, 2) : ""},
                     {accuracy->n ? count_text(*accuracy->n) : absent}});
    }
  }
  return table;
}

std::string recall_without_signal(const Workload& workload) {
  std::string text;
  for (const std::string& task : tasks_of(workload)) {
    std::int64_t cells = 0, silent = 0;
    for (const RecallCell& cell : workload.recall)
      if (cell.task == task) {
        ++cells;
        if (!cell.signal) ++silent;
      }
    if (silent > 0)
      text += fmt::format("{}: no signal in {} of {} cells (the baseline is no better than a guess)\n", task, silent,
                          cells);
  }
  return text;
}

Verdict recall_verdict(const Workload& workload, const std::string& arm) {
  std::string up, down;
  std::size_t compared = 0, equal = 0;
  for (const std::string& task : tasks_of(workload)) {
    const Delta* delta = delta_of(workload, arm, "accuracy/" + task);
    if (delta == nullptr || !delta->low || !delta->high) continue;
    ++compared;
    if (delta->value == 0.0) ++equal;
    if (*delta->low <= 0.0 && *delta->high >= 0.0) continue;
    std::string& list = *delta->low > 0.0 ? up : down;
    list += fmt::format("{}{} {} points", list.empty() ? "" : ", ", task, points(delta));
  }
  if (compared == 0) return {.change = Change::unknown, .text = "no task that the baseline has a signal on"};
  if (!up.empty() && !down.empty())
    return {.change = Change::unknown, .text = "tasks disagree: " + down + " against " + up};
  if (!down.empty()) return {.change = Change::worse, .text = "recalls less: " + down};
  if (!up.empty()) return {.change = Change::better, .text = "recalls more: " + up};
  return {.change = Change::none,
          .text = fmt::format("no {}change of accuracy in any of {} task{}", equal == compared ? "" : "measurable ",
                              compared, compared == 1 ? "" : "s")};
}

namespace sections {

Blocks recall(const Results& results, const Workload& workload) {
  if (workload.recall.empty()) return {};
  Blocks blocks = {
      Heading{3, "Recall"},
      Paragraph{prose("Share of answers that are right, in percent; in brackets the difference from the baseline in "
                      "points. *No signal*: the baseline is no better than a guess there, and the cell is in no pooled "
                      "figure.")}};
  Table pooled({"task", "arm", "accuracy %", "Δ points", "p", "answers"}, {1});
  for (const std::string& task : tasks_of(workload))
    for (const ArmSummary& arm : summarise(results, workload)) {
      const Metric* accuracy = metric_of(workload, arm.name, "accuracy/" + task);
      if (accuracy == nullptr) continue;
      const Delta* delta = delta_of(workload, arm.name, "accuracy/" + task);
      pooled.add_row({task, code(arm.name), percent_text(*accuracy), points(delta),
                      delta != nullptr && delta->p_value ? significant(*delta->p_value, 2) : "",
                      accuracy->n ? count_text(*accuracy->n) : absent});
    }
  if (!pooled.empty()) blocks.emplace_back(pooled);
  for (const std::string& task : tasks_of(workload))
    for (const ArmSummary& arm : summarise(results, workload))
      append(blocks,
             {Paragraph{strong(task) + ", " + code(arm.name) + ":"}, grid(workload, task, arm.name, results.baseline)});
  return blocks;
}

}  // namespace sections
}  // namespace replayeval::reports
