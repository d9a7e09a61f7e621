#include "reports/recall_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
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

// Shares and differences of a workload, times 100, with as many decimals as one answer of its largest task is worth.
class Percent {
 public:
  explicit Percent(const Workload& workload) {
    constexpr std::int64_t many = 10'000;
    for (const auto& [arm, result] : workload.arms)
      for (const auto& [name, metric] : result.metrics)
        if (metric.n.value_or(0) > many) decimals_ = 2;
  }

  std::string share(double value) const { return fmt::format("{:.{}f}", 100.0 * value, decimals_); }
  std::string share(const Metric& value) const { return share(value.value) + interval(value.low, value.high, false); }
  std::string points(double value) const {
    std::string digits = share(std::abs(value));
    if (digits.find_first_not_of("0.") == std::string::npos) return digits;  // what rounds to zero has no sign
    return (value > 0.0 ? "+" : "-") + digits;
  }
  std::string points(const Delta* delta) const {
    return delta == nullptr ? "" : points(delta->value) + interval(delta->low, delta->high, true);
  }

 private:
  std::string interval(const std::optional<double>& low, const std::optional<double>& high, bool sign) const {
    if (!low || !high) return "";
    return sign ? fmt::format(" [{}, {}]", points(*low), points(*high))
                : fmt::format(" [{}, {}]", share(*low), share(*high));
  }

  int decimals_ = 1;
};

// The arm that no difference is from; nullptr where the cell has no accuracy.
const Metric* baseline_of(const RecallCell& cell) {
  for (const auto& [arm, accuracy] : cell.accuracy)
    if (!cell.delta.contains(arm)) return &accuracy;
  return nullptr;
}

// No signal, although more answers are right than a guess would give: so few answers do not tell.
bool has_too_few_answers(const RecallCell& cell) {
  const Metric* baseline = baseline_of(cell);
  return !cell.signal && baseline != nullptr && baseline->value > cell.chance;
}

std::string cell_text(const RecallCell& cell, const std::string& arm, const std::string& baseline,
                      const Percent& percent) {
  const auto found = cell.accuracy.find(arm);
  if (found == cell.accuracy.end()) return absent;
  std::string accuracy = percent.share(found->second.value);
  if (!cell.signal) return accuracy + (has_too_few_answers(cell) ? " (too few answers)" : " (no signal)");
  const auto delta = cell.delta.find(arm);
  if (arm == baseline || delta == cell.delta.end()) return accuracy;
  return fmt::format("{} ({})", accuracy, percent.points(delta->second.value));
}

// Documents that the pooled figures of a task are made of.
std::int64_t pooled_documents(const Workload& workload, const std::string& task) {
  std::int64_t documents = 0;
  for (const RecallCell& cell : workload.recall)
    if (cell.task == task && cell.signal) documents += cell.documents;
  return documents;
}

// The cells of each arm and task that has a pooled figure.
std::vector<std::vector<std::string>> pooled_rows(const Results& results, const Workload& workload) {
  const Percent percent(workload);
  std::vector<std::vector<std::string>> rows;
  for (const std::string& task : tasks_of(workload))
    for (const ArmSummary& arm : summarise(results, workload)) {
      const std::string name = "accuracy/" + task;
      const Metric* accuracy = metric_of(workload, arm.name, name);
      if (accuracy == nullptr) continue;
      const Delta* delta = delta_of(workload, arm.name, name);
      rows.push_back({task, arm.name, percent.share(*accuracy), percent.points(delta),
                      delta != nullptr && delta->p_value ? significant(*delta->p_value, 2) : "",
                      count_text(pooled_documents(workload, task)), accuracy->n ? count_text(*accuracy->n) : absent});
    }
  return rows;
}

// "4 of 4 right, chance 62 %", of cells together.
std::string counts_text(const std::vector<const RecallCell*>& cells) {
  std::int64_t answers = 0;
  double right = 0.0, chance = 0.0;
  for (const RecallCell* cell : cells) {
    const Metric* baseline = baseline_of(*cell);
    const std::int64_t own = baseline == nullptr ? 0 : baseline->n.value_or(0);
    if (own == 0) continue;
    answers += own;
    right += baseline->value * static_cast<double>(own);
    chance += cell->chance * static_cast<double>(own);
  }
  if (answers == 0) return "how many is not known";
  return fmt::format("{} of {} right, chance {} %", count_text(std::llround(right)), count_text(answers),
                     significant(100.0 * chance / static_cast<double>(answers), 2));
}

// Of each task, what is left out of the pooled figures, and why.
std::vector<std::string> left_out(const Workload& workload) {
  std::vector<std::string> lines;
  for (const std::string& task : tasks_of(workload)) {
    std::int64_t cells = 0;
    std::vector<const RecallCell*> silent, undecided;
    for (const RecallCell& cell : workload.recall) {
      if (cell.task != task) continue;
      ++cells;
      if (has_too_few_answers(cell))
        undecided.push_back(&cell);
      else if (!cell.signal)
        silent.push_back(&cell);
    }
    if (!silent.empty())
      lines.push_back(fmt::format("{}: no signal in {} of {} cells (the baseline is no better than a guess: {})", task,
                                  silent.size(), cells, counts_text(silent)));
    if (!undecided.empty())
      lines.push_back(fmt::format("{}: too few answers to tell the baseline from a guess in {} of {} cells ({})", task,
                                  undecided.size(), cells, counts_text(undecided)));
  }
  return lines;
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
  const Percent percent(workload);
  Table table(titles);
  for (const std::int64_t length : lengths) {
    std::vector<Text> row = {count_text(length)};
    for (const auto& depth : depths) {
      const auto found = std::find_if(workload.recall.begin(), workload.recall.end(), [&](const RecallCell& cell) {
        return cell.task == task && cell.length == length && cell.depth == depth;
      });
      row.emplace_back(found == workload.recall.end() ? absent : cell_text(*found, arm, baseline, percent));
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
                   {"documents", Align::right, 7},
                   {"answers", Align::right, 6}});
  for (const std::vector<std::string>& row : pooled_rows(results, workload)) {
    std::vector<Cell> cells;
    for (const std::string& text : row) cells.push_back({text});
    if (row[1] == results.baseline) cells[1] = {row[1] + " *", Tint::bold};
    table.add_row(std::move(cells));
  }
  return table;
}

std::string recall_without_signal(const Workload& workload) {
  std::string text;
  for (const std::string& line : left_out(workload)) text += line + "\n";
  return text;
}

Verdict recall_verdict(const Workload& workload, const std::string& arm) {
  const Percent percent(workload);
  std::string up, down;
  std::size_t compared = 0, equal = 0, wide = 0;
  double none_is_worse = 1.0;  // the chance, where all differences are noise
  for (const std::string& task : tasks_of(workload)) {
    const Delta* delta = delta_of(workload, arm, "accuracy/" + task);
    if (delta == nullptr || !delta->low || !delta->high) continue;
    ++compared;
    none_is_worse *= 1.0 - chance_of_worse(*delta);
    if (delta->value == 0.0) ++equal;
    if (*delta->low <= 0.0 && *delta->high >= 0.0) {
      if (says_nothing(*delta, widest_share)) ++wide;
      continue;
    }
    std::string& list = *delta->low > 0.0 ? up : down;
    list += fmt::format("{}{} {} points", list.empty() ? "" : ", ", task, percent.points(delta));
  }
  if (compared == 0)
    return {.change = Change::unknown,
            .text = std::any_of(workload.recall.begin(), workload.recall.end(), has_too_few_answers)
                        ? "too few answers to tell the baseline from a guess in any task"
                        : "no task that the baseline has a signal on"};
  const double chance = 1.0 - none_is_worse;
  if (!up.empty() && !down.empty())
    return {.change = Change::unknown, .text = "tasks disagree: " + down + " against " + up, .chance = chance};
  if (!down.empty()) return {.change = Change::worse, .text = "recalls less: " + down, .chance = chance};
  if (!up.empty()) return {.change = Change::better, .text = "recalls more: " + up, .chance = chance};
  const std::string found = fmt::format("no {}change of accuracy in any of {} task{}",
                                        equal == compared ? "" : "measurable ", compared, compared == 1 ? "" : "s");
  if (wide == compared)
    return {.change = Change::imprecise, .text = "too few documents to tell: " + found, .chance = chance};
  return {.change = Change::none,
          .text = found + (wide == 0 ? "" : fmt::format(" (too few documents to tell in {})", wide)),
          .chance = chance};
}

namespace sections {

Blocks recall(const Results& results, const Workload& workload) {
  if (workload.recall.empty()) return {};
  Blocks blocks = {
      Heading{3, "Recall"},
      Paragraph{
          prose("Share of answers that are right, in percent; in brackets the difference from the baseline in "
                "points. Intervals and p are over documents, whose answers depend on each other. *No signal*: the "
                "baseline is no better than a guess there; *too few answers*: it may be, but so few cannot show "
                "it. Neither is in any pooled figure.")}};
  Table pooled({"task", "arm", "accuracy %", "Δ points", "p", "documents", "answers"}, {1});
  for (const std::vector<std::string>& row : pooled_rows(results, workload)) {
    std::vector<Text> cells(row.begin(), row.end());
    cells[1] = code(row[1]);
    pooled.add_row(cells);
  }
  if (!pooled.empty()) blocks.emplace_back(pooled);
  Bullets silent;
  for (const std::string& line : left_out(workload)) silent.items.emplace_back(line);
  if (!silent.items.empty()) blocks.emplace_back(silent);
  for (const std::string& task : tasks_of(workload))
    for (const ArmSummary& arm : summarise(results, workload))
      append(blocks,
             {Paragraph{strong(task) + ", " + code(arm.name) + ":"}, grid(workload, task, arm.name, results.baseline)});
  return blocks;
}

}  // namespace sections
}  // namespace replayeval::reports
