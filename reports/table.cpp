#include "reports/table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "reports/churn_table.h"
#include "reports/generation_table.h"
#include "reports/numbers.h"
#include "reports/recall_table.h"
#include "reports/stored_comparison.h"
#include "reports/summary.h"
#include "reports/task_family_table.h"
#include "reports/task_table.h"
#include "reports/text_table.h"
#include "reports/verdict.h"

namespace replayeval::reports {
namespace {

constexpr const char* absent = "–";

std::string number(const std::optional<double>& value, int digits) {
  return value ? significant(*value, digits) : absent;
}

std::string row_name(const ArmSummary& arm) { return arm.is_baseline ? arm.name + " *" : arm.name; }

TextTable quality_table(const Workload& workload, const std::vector<ArmSummary>& arms) {
  TextTable table({{"arm", Align::left, 0},
                   {"perplexity", Align::right, 0},
                   {"ΔPPL %", Align::right, 0},
                   {"interval", Align::left, 9},
                   {"mean KL", Align::right, 8},
                   {"p99.9 KL", Align::right, 5},
                   {"max KL", Align::right, 6},
                   {"same top-1 %", Align::right, 7}});
  for (const ArmSummary& arm : arms) {
    std::string delta = arm.is_baseline ? "" : absent;
    std::string interval;
    if (arm.perplexity_ratio) {
      const Spread text =
          spread(arm.perplexity_ratio->value, arm.perplexity_ratio->low, arm.perplexity_ratio->high, 100.0);
      delta = text.value;
      if (!text.low.empty()) interval = fmt::format("[{}, {}]", text.low, text.high);
    }
    const bool base = arm.is_baseline;
    const Tint tint = base ? Tint::none : tint_of(verdict(workload, arm.name));
    table.add_row({{row_name(arm), base ? Tint::bold : Tint::none},
                   {perplexity_text(arm)},
                   {delta, tint},
                   {interval, tint},
                   {base ? "" : number(arm.kl_mean, 2)},
                   {base ? "" : number(arm.kl_p999, 2)},
                   {base ? "" : number(arm.kl_max, 2)},
                   {base ? "" : same_top1_percent(arm)}});
  }
  return table;
}

struct Depth {
  Column column;
  std::optional<double> ArmSummary::*error;
  bool of_baseline;
};

// Those that were measured.
std::vector<Depth> depths_of(const std::vector<ArmSummary>& arms) {
  std::vector<Depth> depths = {{{"vs gold", Align::right, 9}, &ArmSummary::gold_error, true},
                               {{"propagated", Align::right, 8}, &ArmSummary::propagated_error, false},
                               {{"local", Align::right, 4}, &ArmSummary::local_error, false}};
  std::erase_if(depths, [&](const Depth& depth) {
    return std::none_of(arms.begin(), arms.end(),
                        [&](const ArmSummary& arm) { return (arm.*depth.error).has_value(); });
  });
  return depths;
}

TextTable cost_table(const std::vector<ArmSummary>& arms) {
  const std::vector<Depth> depths = depths_of(arms);
  std::vector<Column> columns = {{"arm", Align::left, 0}};
  for (const Depth& depth : depths) columns.push_back(depth.column);
  columns.insert(columns.end(), {{"saturated", Align::right, 3},
                                 {"tokens/s", Align::right, 7},
                                 {"of baseline", Align::right, 6},
                                 {"in mixers", Align::right, 5}});
  TextTable table(columns);
  for (const ArmSummary& arm : arms) {
    const Tint overflow = arm.saturated > 0 || arm.non_finite > 0 ? Tint::bad : Tint::none;
    std::vector<Cell> row = {{row_name(arm), arm.is_baseline ? Tint::bold : Tint::none}};
    for (const Depth& depth : depths)
      row.push_back({arm.is_baseline && !depth.of_baseline ? "" : number(arm.*depth.error, 2)});
    row.push_back({count_text(arm.saturated), overflow});
    row.push_back({arm.tokens_per_second ? count_text(std::llround(*arm.tokens_per_second)) : absent});
    row.push_back({arm.speed_ratio ? fmt::format("{:.2f}×", *arm.speed_ratio) : absent});
    row.push_back({arm.mixer_seconds ? seconds_text(*arm.mixer_seconds) : absent});
    table.add_row(std::move(row));
  }
  return table;
}

// Teacher-forced blocks are far from how a server decodes, and a reader takes tokens/s for that.
std::string cost_heading(const std::vector<ArmSummary>& arms) {
  const std::string speed = "speed of this evaluation (decode speed: `replayeval bench model`):";
  if (depths_of(arms).empty()) return "The " + speed;
  return "State error of the worst layer (relative Frobenius; gold is float64), and the " + speed;
}

// Its steps are a server's, but for the arms that ride along.
constexpr const char* generation_cost_heading =
    "Decode speed with all arms in one batch (of one arm alone: `replayeval bench model`):";

std::string verdicts(const Results& results, const Workload& workload, const std::vector<ArmSummary>& arms,
                     const TableOptions& options) {
  std::string text;
  for (const ArmSummary& arm : arms) {
    if (arm.name == results.baseline) continue;
    const Verdict said = verdict(workload, arm.name);
    const std::string lines =
        wrapped(fmt::format("{} ({}): {}", arm.name, arm.description, said.text), options.width - 2, 4);
    text += tinted("•", tint_of(said), options.colour) + " " + lines;
    if (arm.non_finite > 0) {
      text += tinted(fmt::format("    {} non-finite states were stored\n", count_text(arm.non_finite)), Tint::bad,
                     options.colour);
    }
  }
  return text;
}

std::string warnings(const Workload& workload, const TableOptions& options) {
  std::string text;
  std::istringstream lines(warnings_of(workload));
  for (std::string line; std::getline(lines, line);) text += wrapped("Warning: " + line, options.width, 2);
  return text;
}

std::string workload_section(const Results& results, const Workload& workload, const TableOptions& options) {
  const std::vector<ArmSummary> arms = summarise(results, workload);
  std::string text = tinted(fmt::format("{} ({})", workload.name, workload.kind), Tint::bold, options.colour) + "\n";
  for (const std::string& line : {data_line(workload), mode_line(workload)}) {
    if (!line.empty()) text += wrapped("  " + line, options.width, 2);
  }
  if (workload.kind == "recall") {
    const TextTable pooled = recall_table(results, workload);
    if (!pooled.empty()) text += "\n" + pooled.render(options.width, options.colour);
    for (const std::string& more :
         {recall_without_signal(workload), warnings(workload, options), verdicts(results, workload, arms, options)})
      if (!more.empty()) text += "\n" + more;
    return text;
  }
  if (workload.kind == "churn")
    return text + "\n" + churn_table(workload).render(options.width, options.colour) + churn_verdict(workload) + "\n";
  const bool task = workload.kind == "task", generation = workload.kind == "generation";
  const TextTable quality = task         ? task_table(results, workload)
                            : generation ? generation_table(results, workload)
                                         : quality_table(workload, arms);
  text += "\n" + quality.render(options.width, options.colour);
  if (const std::string warned = warnings(workload, options); !warned.empty()) text += "\n" + warned;
  text += "\n" + wrapped(has_generated(workload) ? generation_cost_heading : cost_heading(arms), options.width, 0);
  text += cost_table(arms).render(options.width, options.colour);
  const std::string said = verdicts(results, workload, arms, options);
  if (!said.empty()) text += "\n" + said;
  if (const std::string stored = stored_baseline_line(workload); !stored.empty())
    text += "\n" + wrapped("Against " + stored + ":", options.width, 0) +
            stored_comparison_table(workload).render(options.width, options.colour) +
            wrapped(stored_rounding_line(workload), options.width, 0);
  return text;
}

}  // namespace

TableOptions table_options_for(std::FILE* stream) {
  TableOptions options;
  const int descriptor = ::fileno(stream);
  if (::isatty(descriptor) == 0) return options;
  const char* no_colour = std::getenv("NO_COLOR");
  options.colour = no_colour == nullptr || *no_colour == '\0';
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.width = std::min<int>(size.ws_col, 100);
  return options;
}

std::string summary_table(const Results& results, const TableOptions& options) {
  std::string text = wrapped(fmt::format("Checkpoint {} ({}); baseline: {} (*)", results.checkpoint.value("path", "?"),
                                         results.checkpoint.value("model_type", "?"), results.baseline),
                             options.width, 2);
  for (const Workload& workload : results.workloads) {
    text += "\n" + workload_section(results, workload, options);
  }
  if (!results.task_families.empty()) {
    text += "\n" + tinted("all tasks together", Tint::bold, options.colour) + "\n\n" +
            task_family_table(results).render(options.width, options.colour) + task_family_power(results);
  }
  if (results.workloads.empty()) text += "No workload has finished yet.\n";
  return text;
}

}  // namespace replayeval::reports
