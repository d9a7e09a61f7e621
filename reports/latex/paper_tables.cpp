#include "reports/latex/paper_tables.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>
#include <variant>

#include "reports/figure_files.h"
#include "reports/generation_table.h"
#include "reports/numbers.h"
#include "reports/sections.h"
#include "reports/summary.h"
#include "reports/task_family_table.h"

namespace replayeval::reports::latex {
namespace {

constexpr const char* absent = "–";

std::string number(const std::optional<double>& value, int digits = 2) {
  return value ? significant(*value, digits) : absent;
}

// Arms that the baseline could take the place of: they differ from it in nothing but their name.
std::set<std::string> controls(const Results& results) {
  const auto arithmetic = [](nlohmann::json arm) {
    arm.erase("name");
    return arm;
  };
  std::set<std::string> names;
  for (const nlohmann::json& baseline : results.arms)
    for (const nlohmann::json& arm : results.arms)
      if (baseline.at("name") == results.baseline && arm.at("name") != results.baseline &&
          arithmetic(arm) == arithmetic(baseline))
        names.insert(arm.at("name"));
  return names;
}

Table marked(const Table& table, const std::set<std::string>& control) {
  std::vector<std::size_t> left;
  for (std::size_t c = 1; c < table.titles().size(); ++c)
    if (table.to_the_left(c)) left.push_back(c);
  Table copy(table.titles(), left);
  for (std::vector<Text> row : table.rows()) {
    for (Text& cell : row)
      if (control.contains(cell.plain())) cell += " (A/A)";
    copy.add_row(std::move(row));
  }
  return copy;
}

std::string caption(const Results& results, const Workload& workload, const std::string& what) {
  std::string text = fmt::format("{} Checkpoint {}, workload {}", what, checkpoint_name(results), workload.name);
  for (const std::string& line : {data_line(workload), mode_line(workload)})
    if (!line.empty()) text += "; " + line;
  const std::set<std::string> control = controls(results);
  text += fmt::format(". Baseline: {}; ", results.baseline);
  return text + (control.empty() ? "no A/A control was run." : "A/A: an arm equal to it in all but its name.");
}

Table quality(const Results& results, const Workload& workload) {
  Table table({"arm", "ΔPPL %", "mean KL", "max KL", "same top-1 %"});
  for (const ArmSummary& arm : summarise(results, workload)) {
    if (arm.is_baseline) {
      table.add_row({code(arm.name),
                     "PPL " + (arm.perplexity ? rounded(*arm.perplexity, arm.perplexity_error, 6) : absent), "", "",
                     ""});
      continue;
    }
    const auto& ratio = arm.perplexity_ratio;
    table.add_row({code(arm.name), ratio ? spread_text(spread(ratio->value, ratio->low, ratio->high, 100.0)) : absent,
                   number(arm.kl_mean), number(arm.kl_max), same_top1_percent(arm)});
  }
  return table;
}

Table state_error(const Results& results, const Workload& workload) {
  Table table({"arm", "vs gold", "propagated", "local", "saturated"});
  for (const ArmSummary& arm : summarise(results, workload))
    table.add_row({code(arm.name), number(arm.gold_error), arm.is_baseline ? absent : number(arm.propagated_error),
                   arm.is_baseline ? absent : number(arm.local_error), count_text(arm.saturated)});
  return table;
}

Table speed(const Results& results, const Workload& workload) {
  Table table({"arm", "tokens/s", "of baseline", "state", "ring"});
  for (const ArmSummary& arm : summarise(results, workload)) {
    const auto found = workload.arms.find(arm.name);
    const auto bytes = [&](std::optional<std::int64_t> ArmResult::*kept) {
      if (found == workload.arms.end() || !(found->second.*kept)) return std::string(absent);
      return bytes_text(static_cast<double>(*(found->second.*kept)));
    };
    table.add_row({code(arm.name), arm.tokens_per_second ? count_text(std::llround(*arm.tokens_per_second)) : absent,
                   arm.speed_ratio ? fmt::format("{:.2f}×", *arm.speed_ratio) : absent, bytes(&ArmResult::state_bytes),
                   bytes(&ArmResult::ring_bytes)});
  }
  return table;
}

// The section's first tables, numbered where there are several, each under the heading that it stands below.
void add_section(const Results& results, const Workload& workload, const char* name, const Blocks& blocks,
                 std::vector<PaperTable>& tables, std::size_t most = 8) {
  std::size_t count = 0;
  std::string heading;
  for (const Block& block : blocks) {
    if (const auto* above = std::get_if<Heading>(&block)) heading = above->text + ".";
    const auto* table = std::get_if<Table>(&block);
    if (table == nullptr || table->empty() || count == most) continue;
    ++count;
    const std::string number = count == 1 ? "" : fmt::format("-{}", count);
    tables.push_back({fmt::format("{}-{}{}", safe_name(workload.name), name, number),
                      caption(results, workload, heading), marked(*table, controls(results))});
  }
}

// Signs of degeneration across, arms down; all of them are in the twins.
void add_generation(const Results& results, const Workload& workload, std::vector<PaperTable>& tables) {
  const std::size_t begin = tables.size();
  add_section(results, workload, "generation", sections::generation(results, workload), tables);
  if (begin == tables.size()) return;
  PaperTable& degeneration = tables[begin];
  degeneration.all =
      std::exchange(degeneration.table, marked(degeneration_by_arm(results, workload), controls(results)));
  degeneration.caption +=
      std::string(" Means over sequences, and the paired difference from the baseline with its interval: in ") +
      (runs_to_the_limit(workload) ? "" : "tokens, ") + "percentage points, and of the compression ratio.";
}

// Deltas of all tasks together: tasks across, a row a metric and arm.
std::vector<PaperTable> tasks_together(const Results& results) {
  std::vector<PaperTable> tables;
  for (const Block& block : sections::task_families(results)) {
    const auto* table = std::get_if<Table>(&block);
    if (table == nullptr) continue;
    const std::string caption = fmt::format(
        "All tasks together: {}. Paired differences from the baseline ({}) in percentage points, with intervals. "
        "Checkpoint {}.",
        task_sizes(results), results.baseline, checkpoint_name(results));
    tables.push_back({"tasks", caption, marked(task_families_by_arm(results), controls(results)),
                      marked(*table, controls(results))});
  }
  return tables;
}

void add_workload(const Results& results, const Workload& workload, std::vector<PaperTable>& tables) {
  const std::set<std::string> control = controls(results);
  const auto add = [&](const char* name, const char* what, const Table& table) {
    tables.push_back({safe_name(workload.name) + "-" + name, caption(results, workload, what), marked(table, control)});
  };
  if (workload.kind == "perplexity")
    add("quality",
        "Perplexity against the baseline with its interval, and divergence of the next token's distribution (KL in "
        "nats "
        "a token).",
        quality(results, workload));
  if (!workload.state_errors.empty())
    add("state-error", "Relative Frobenius error of the state in the worst layer and position.",
        state_error(results, workload));
  if (workload.kind == "task") add_section(results, workload, "task", sections::task(results, workload), tables);
  // By length and depth it is a heat map.
  add_section(results, workload, "recall", sections::recall(results, workload), tables, 1);
  if (workload.kind == "generation" || workload.kind == "task") add_generation(results, workload, tables);
  add_section(results, workload, "churn", sections::churn(results, workload), tables);
  add_section(results, workload, "stored", sections::against(results, workload), tables);
  if (workload.kind != "churn")
    add("speed", "Speed of this evaluation with all arms stacked, and bytes a sequence.", speed(results, workload));
}

}  // namespace

std::vector<PaperTable> paper_tables(const Results& results) {
  std::vector<PaperTable> tables;
  for (const Workload& workload : results.workloads) add_workload(results, workload, tables);
  for (PaperTable& table : tasks_together(results)) tables.push_back(std::move(table));
  return tables;
}

}  // namespace replayeval::reports::latex
