#include "reports/task_family_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "reports/numbers.h"
#include "reports/power_text.h"
#include "reports/sections.h"

namespace replayeval::reports {
namespace {

constexpr std::size_t most_tasks_across = 4;  // columns that a page has room for beside the pooled ones

std::string points(const Delta& delta) { return spread_text(spread(delta.value, delta.low, delta.high, 100.0)); }

std::string p_text(const std::optional<double>& p_value) { return p_value ? significant(*p_value, 2) : ""; }

std::string equivalence_text(const std::optional<Equivalence>& tested) {
  if (!tested) return "";
  return fmt::format("{} (p {})", tested->equivalent ? "yes" : "not shown", significant(tested->p_value, 2));
}

// metric, arm, task, documents, delta, p, Holm's p, equivalent
std::vector<std::vector<std::string>> rows_of(const TaskFamily& family) {
  std::vector<std::vector<std::string>> rows;
  for (const TaskFamily::Member& task : family.tasks)
    rows.push_back({family.metric, family.arm, task.workload, count_text(task.n), points(task.delta),
                    p_text(task.delta.p_value), p_text(task.adjusted_p_value), ""});
  const std::string documents = count_text(family.n);
  rows.push_back({family.metric, family.arm, "all, by document", documents, points(family.by_question),
                  p_text(family.by_question.p_value), "", equivalence_text(family.equivalence)});
  rows.push_back({family.metric, family.arm, "all, by task", documents, points(family.by_task),
                  p_text(family.by_task.p_value), "", ""});
  return rows;
}

std::string power_of(const TaskFamily& family) {
  PowerNumbers numbers;
  numbers.documents = family.n;
  numbers.detectable = family.detectable;
  if (family.equivalence) numbers.margin = family.equivalence->margin;
  numbers.to_detect_margin = family.documents_to_detect_margin;
  numbers.to_show_equivalence = family.documents_to_show_equivalence;
  return fmt::format("{}, {}: {}", family.metric, family.arm, power_text(numbers));
}

}  // namespace

TextTable task_family_table(const Results& results) {
  TextTable table({{"metric", Align::left, 0},
                   {"arm", Align::left, 0},
                   {"task", Align::left, 0},
                   {"documents", Align::right, 5},
                   {"Δ points", Align::left, 9},
                   {"p", Align::right, 7},
                   {"p (Holm)", Align::right, 8},
                   {"equivalent", Align::left, 6}});
  for (const TaskFamily& family : results.task_families)
    for (const std::vector<std::string>& row : rows_of(family)) {
      std::vector<Cell> cells;
      for (const std::string& cell : row) cells.push_back({cell});
      table.add_row(std::move(cells));
    }
  return table;
}

std::string task_family_power(const Results& results) {
  std::string text;
  for (const TaskFamily& family : results.task_families) text += power_of(family) + "\n";
  return text;
}

Table task_families_by_arm(const Results& results) {
  std::vector<std::string> tasks;  // in the order of their first mention
  for (const TaskFamily& family : results.task_families)
    for (const TaskFamily::Member& task : family.tasks)
      if (std::find(tasks.begin(), tasks.end(), task.workload) == tasks.end()) tasks.push_back(task.workload);
  if (tasks.size() > most_tasks_across) tasks.clear();
  std::vector<Text> titles = {"metric", "arm"};
  titles.insert(titles.end(), tasks.begin(), tasks.end());
  for (const char* title : {"all, by document", "all, by task", "equivalent"}) titles.emplace_back(title);
  Table table(titles, {1});
  for (const TaskFamily& family : results.task_families) {
    std::vector<Text> row = {family.metric, code(family.arm)};
    for (const std::string& name : tasks) {
      const auto task = std::find_if(family.tasks.begin(), family.tasks.end(),
                                     [&](const TaskFamily::Member& member) { return member.workload == name; });
      row.emplace_back(task == family.tasks.end() ? "–" : points(task->delta));
    }
    for (const std::string& text :
         {points(family.by_question), points(family.by_task), equivalence_text(family.equivalence)})
      row.emplace_back(text);
    table.add_row(std::move(row));
  }
  return table;
}

std::string task_sizes(const Results& results) {
  std::map<std::string, std::int64_t> sizes;
  for (const TaskFamily& family : results.task_families)
    for (const TaskFamily::Member& task : family.tasks) sizes[task.workload] = task.n;
  std::string text;
  for (const auto& [name, size] : sizes)
    text += fmt::format("{}{} ({} documents)", text.empty() ? "" : ", ", name, count_text(size));
  return text;
}

namespace sections {

Blocks task_families(const Results& results) {
  if (results.task_families.empty()) return {};
  Table table({"metric", "arm", "task", "documents", "Δ points [interval]", "p", "p (Holm)", "equivalent"},
              {1, 2, 4, 7});
  Bullets powers;
  for (const TaskFamily& family : results.task_families) {
    for (const std::vector<std::string>& row : rows_of(family)) table.add_row({row.begin(), row.end()});
    powers.items.emplace_back(power_of(family));
  }
  return {Heading{2, "All tasks together"}, table,
          Paragraph{"p: McNemar's exact test. p (Holm): corrected for having asked that many tasks of the arm. Pooled "
                    "intervals are made of the tasks' own (MOVER). Equivalent: by two one-sided tests on all "
                    "documents, within the margin that the tasks share."},
          powers};
}

}  // namespace sections
}  // namespace replayeval::reports
