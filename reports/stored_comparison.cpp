#include "reports/stored_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "reports/metric_names.h"
#include "reports/numbers.h"
#include "reports/sections.h"

namespace replayeval::reports {
namespace {

constexpr const char* absent = "–";

bool has_divergence(const Workload& workload) {
  return std::any_of(workload.against.begin(), workload.against.end(),
                     [](const StoredComparison& row) { return !row.divergence.empty(); });
}

std::string metric_text(const StoredComparison& row, const char* name, double scale, int digits) {
  const auto found = row.divergence.find(name);
  if (found == row.divergence.end()) return absent;
  std::optional<double> error = half_width(found->second.low, found->second.high);
  if (error) *error *= scale;
  return rounded(found->second.value * scale, error, digits);
}

std::vector<std::string> titles(const Workload& workload) {
  std::vector<std::string> all = {"arm", "stored arm", "ΔPPL %", "interval"};
  if (has_divergence(workload)) all.insert(all.end(), {"mean KL", "max KL", "same top-1 %"});
  return all;
}

std::vector<std::string> cells(const Workload& workload, const StoredComparison& row) {
  Spread ratio{absent, "", ""};
  if (const auto found = row.deltas.find(names::perplexity_ratio); found != row.deltas.end())
    ratio = spread(found->second.value, found->second.low, found->second.high, 100.0);
  std::vector<std::string> all = {row.arm, row.stored_arm == row.arm ? "the same" : row.stored_arm, ratio.value,
                                  ratio.low.empty() ? absent : fmt::format("[{}, {}]", ratio.low, ratio.high)};
  if (has_divergence(workload))
    all.insert(all.end(), {metric_text(row, names::kl_mean, 1.0, 2), metric_text(row, names::kl_max, 1.0, 2),
                           metric_text(row, names::same_top1, 100.0, 6)});
  return all;
}

}  // namespace

std::string stored_baseline_line(const Workload& workload) {
  if (workload.against.empty()) return "";
  const nlohmann::json stored = workload.data.value("against", nlohmann::json::object());
  const auto text = [&](const char* object, const char* key) {
    return stored.value(object, nlohmann::json::object()).value(key, std::string("?"));
  };
  const std::string kept = stored.value("form", "") == "hidden" ? stored.value("hidden_dtype", "?") + " hidden states"
                                                                : std::string("log-probabilities");
  return fmt::format("the stored baseline of {} ({}, {})", text("tool", "git"),
                     text("environment", "date").substr(0, 10), kept);
}

TextTable stored_comparison_table(const Workload& workload) {
  std::vector<Column> columns;
  for (const std::string& title : titles(workload))
    columns.push_back({title, columns.size() < 2 || title == "interval" ? Align::left : Align::right, 0});
  TextTable table(columns);
  for (const StoredComparison& row : workload.against) {
    std::vector<Cell> line;
    for (const std::string& cell : cells(workload, row)) line.push_back({cell});
    table.add_row(std::move(line));
  }
  return table;
}

std::string stored_rounding_line(const Workload& workload) {
  const nlohmann::json stored = workload.data.value("against", nlohmann::json::object());
  const auto rounding = stored.find("log_prob_max_difference");
  if (rounding == stored.end()) return "";
  if (rounding->get<double>() == 0.0) return "Log-probabilities from the stored hidden states are those of that time.";
  return fmt::format("Log-probabilities from the stored hidden states are within {} of those of that time.",
                     significant(rounding->get<double>(), 2));
}

Blocks sections::against(const Results& /*results*/, const Workload& workload) {
  if (workload.against.empty()) return {};
  std::vector<Text> heads;
  for (const std::string& title : titles(workload)) heads.emplace_back(title);
  Table table(heads, {1});
  for (const StoredComparison& row : workload.against) {
    std::vector<Text> line;
    for (const std::string& cell : cells(workload, row)) line.push_back(line.empty() ? code(cell) : Text(cell));
    table.add_row(std::move(line));
  }
  Blocks blocks = {
      Heading{3, "Against " + stored_baseline_line(workload)}, table,
      Paragraph{"Each arm against what the earlier run kept of its namesake; KL from the stored arm to this "
                "run's, nats a token over the full vocabulary."}};
  if (const std::string rounding = stored_rounding_line(workload); !rounding.empty())
    blocks.emplace_back(Paragraph{rounding});
  return blocks;
}

}  // namespace replayeval::reports
