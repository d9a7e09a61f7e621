// What an arm costs in quality.
#include <fmt/format.h>

#include <set>

#include "reports/generation_table.h"
#include "reports/metric_names.h"
#include "reports/numbers.h"
#include "reports/sections.h"
#include "reports/summary.h"
#include "reports/verdict.h"

namespace replayeval::reports::sections {
namespace {

constexpr const char* absent = "–";

std::string number(const std::optional<double>& value, int digits = 3) {
  return value ? significant(*value, digits) : absent;
}

std::string interval_text(const Delta& delta, double scale) {
  const Spread text = spread(delta.value, delta.low, delta.high, scale);
  return text.low.empty() ? absent : fmt::format("[{}, {}]", text.low, text.high);
}

// Arms in the order of the results, which is the order they were written in.
std::vector<std::string> compared_arms(const Results& results) {
  std::vector<std::string> names;
  for (const nlohmann::json& arm : results.arms) {
    const std::string name = arm.at("name");
    if (name != results.baseline) names.push_back(name);
  }
  return names;
}

}  // namespace

Table arms(const Results& results) {
  Table table({"arm", "what it is"}, {1});
  for (const nlohmann::json& arm : results.arms) {
    const std::string name = arm.at("name");
    table.add_row(
        {code(name), Text(arm_description(arm)) + (name == results.baseline ? prose(" (**baseline**)") : Text())});
  }
  return table;
}

Blocks compared(const Results& results, const Workload& workload) {
  Blocks blocks = {Heading{3, "What was compared"}, arms(results)};
  append(blocks, data(workload));
  return blocks;
}

Blocks data(const Workload& workload) {
  Blocks blocks;
  std::string text;
  for (const std::string& line : {data_line(workload), mode_line(workload)})
    if (!line.empty()) text += (text.empty() ? "" : " ") + line + ".";
  if (!text.empty()) blocks.emplace_back(Paragraph{text});
  if (const std::string warnings = warnings_of(workload); !warnings.empty())
    append(blocks, {Paragraph{"Warnings:"}, Verbatim{warnings, "text"}});
  return blocks;
}

Blocks verdicts(const Results& results, const Workload& workload) {
  Bullets list;
  for (const std::string& arm : compared_arms(results)) {
    const Verdict said = verdict(workload, arm);
    list.items.push_back((strong(arm) + (": " + said.text)).with(tint_of(said)));
  }
  return {Heading{3, "Verdict"}, list};
}

Blocks summary(const Results& results, const Workload& workload) {
  Table table({"arm", "perplexity", "ΔPPL %", "interval", "mean KL", "99.9 % KL", "max KL", "same top-1 %",
               "state error vs gold", "propagated", "tokens/s", "of baseline"});
  for (const ArmSummary& arm : summarise(results, workload)) {
    const auto unless_baseline = [&](const std::string& cell) { return arm.is_baseline ? std::string() : cell; };
    const auto& delta = arm.perplexity_ratio;
    table.add_row({code(arm.name), perplexity_text(arm),
                   unless_baseline(delta ? spread(delta->value, delta->low, delta->high, 100.0).value : absent),
                   unless_baseline(delta ? interval_text(*delta, 100.0) : absent), unless_baseline(number(arm.kl_mean)),
                   unless_baseline(number(arm.kl_p999)), unless_baseline(number(arm.kl_max)),
                   unless_baseline(same_top1_percent(arm)), number(arm.gold_error),
                   unless_baseline(number(arm.propagated_error)), number(arm.tokens_per_second, 4),
                   arm.speed_ratio ? fmt::format("{:.3f}×", *arm.speed_ratio) : absent});
  }
  return {Heading{3, "Summary"}, table,
          Paragraph{prose("KL in nats a token, from the baseline to the arm over the full vocabulary. State error: "
                          "relative Frobenius, the worst layer and position; *gold* is the float64 recurrence on the "
                          "inputs that the arm itself saw.")}};
}

Blocks deltas(const Results& results, const Workload& workload) {
  Table table({"arm", "metric", "delta", "interval", "confidence", "p", "method"}, {1, 6});
  for (const std::string& arm : compared_arms(results)) {
    const auto found = workload.deltas.find(arm);
    if (found == workload.deltas.end()) continue;
    for (const auto& [metric, delta] : found->second) {
      if (is_constant(workload, metric)) continue;
      table.add_row({code(arm), code(metric), spread(delta.value, delta.low, delta.high).value,
                     interval_text(delta, 1.0),
                     delta.confidence ? fmt::format("{:g} %", 100.0 * *delta.confidence) : absent,
                     number(delta.p_value), delta.method});
    }
  }
  if (table.empty()) return {};
  Blocks blocks{Heading{3, "Paired deltas (arm minus baseline)"}, table};
  if (workload.kind == "perplexity")
    blocks.push_back(
        Paragraph{prose("`perplexity_relative` is PPL / baseline PPL − 1; `mean_log_likelihood` is in nats a token; "
                        "`_t` is the second interval of the same quantity.")});
  if (workload.kind == "task") blocks.push_back(Paragraph{prose("`_t` is a second interval of the same quantity.")});
  return blocks;
}

Blocks divergence(const Results& results, const Workload& workload) {
  std::set<std::string> metrics;
  for (const auto& [arm, values] : workload.divergence) {
    for (const auto& [metric, unused] : values) metrics.insert(metric);
  }
  if (metrics.empty()) return {};
  std::vector<Text> titles = {"metric"};
  const std::vector<std::string> arms = compared_arms(results);
  for (const std::string& arm : arms) titles.push_back(code(arm));
  Table table(titles);
  for (const std::string& metric : metrics) {
    std::vector<Text> row = {code(metric)};
    for (const std::string& arm : arms) {
      const auto values = workload.divergence.find(arm);
      const bool known = values != workload.divergence.end() && values->second.contains(metric);
      if (!known) {
        row.emplace_back(absent);
        continue;
      }
      const Metric& value = values->second.at(metric);
      const std::optional<double> error = half_width(value.low, value.high);
      const auto text = [&](double of) { return rounded(of, error, 3); };
      row.emplace_back(text(value.value) +
                       (error ? fmt::format(" [{}, {}]", text(*value.low), text(*value.high)) : ""));
    }
    table.add_row(row);
  }
  return {Heading{3, "Divergence from the baseline"}, table,
          Paragraph{prose("`kl_*`: nats a token; `dp_*`: probability of the target, arm minus baseline; the others: "
                          "shares of tokens.")}};
}

Blocks positions(const Results& results, const Workload& workload) {
  if (workload.positions.empty()) return {};
  const std::vector<std::string> arms = compared_arms(results);
  std::vector<Text> titles = {"position", "tokens", code(results.baseline) + " PPL"};
  for (const std::string& arm : arms) titles.push_back(code(arm) + " Δ");
  Table table(titles);
  for (const PositionBucket& bucket : workload.positions) {
    std::vector<Text> row = {fmt::format("{} – {}", bucket.begin, bucket.end - 1), count_text(bucket.n)};
    const auto base = bucket.perplexity.find(results.baseline);
    row.push_back(base == bucket.perplexity.end()
                      ? absent
                      : rounded(base->second.value, half_width(base->second.low, base->second.high), 5));
    for (const std::string& arm : arms) {
      const auto delta = bucket.delta.find(arm);
      row.push_back(delta == bucket.delta.end()
                        ? absent
                        : spread_text(spread(delta->second.value, delta->second.low, delta->second.high, 1e6)));
    }
    table.add_row(row);
  }
  return {Heading{3, "By position in the window"},
          Paragraph{"Delta of the mean log-likelihood, in 10⁻⁶ nats a token; below zero is worse."}, table};
}

}  // namespace replayeval::reports::sections
