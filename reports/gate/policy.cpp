#include "reports/gate/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "reports/numbers.h"

namespace replayeval::reports::gate {
namespace {

enum class Unit : std::uint8_t { none, percent, points, times, count };

bool starts_with_any(const std::string& name, std::initializer_list<const char*> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const char* beginning) { return name.starts_with(beginning); });
}

bool is_share(const std::string& name) {
  return starts_with_any(name, {"acc", "exact_match", "truncated", "looped", "repeated_span_share", "repeated_3grams",
                                "same_top1", "tie_share", "top1_changed", "identical", "edit_share", "began_at_tie"});
}

bool has_a_unit(const std::string& name) {
  return name == "perplexity" || name == "repeated_span" ||
         starts_with_any(name, {"mean_log_likelihood", "kl_", "length"});
}

bool is_change_of_ratio(const Rule& rule) {
  const std::string group = rule.group();
  return rule.against == Against::release && (group == "speed" || group == "bytes" || group == "state_error");
}

Unit unit_of(const Rule& rule) {
  const std::string group = rule.group(), name = rule.pattern();
  if (is_change_of_ratio(rule)) return Unit::percent;
  if (rule.metric == "speed.over_baseline") return Unit::times;
  if (group == "storage" || group == "churn" || group == "bytes") return Unit::count;
  if (name.find("_relative") != std::string::npos) return Unit::percent;
  if (group == "delta" && (name.starts_with("acc") || name.starts_with("exact_match") ||
                           name.starts_with("truncated") || name.starts_with("looped")))
    return Unit::points;
  return Unit::none;
}

}  // namespace

std::vector<std::string> groups() {
  return {"delta", "divergence", "stored_delta", "stored_divergence", "arm",
          "speed", "bytes",      "state_error",  "storage",           "churn"};
}

std::vector<std::string> names_of_group(const std::string& group) {
  if (group == "speed") return {"tokens_per_second", "over_baseline"};
  if (group == "bytes") return {"state", "ring"};
  if (group == "state_error") return {"local", "propagated", "gold"};
  if (group == "storage") return {"saturated", "non_finite"};
  if (group == "churn") return {"broken"};
  return {};
}

bool is_counted(const std::string& group) {
  return group == "bytes" || group == "state_error" || group == "storage" || group == "churn";
}

Scale scale_of(const Rule& rule) {
  const std::string group = rule.group(), name = rule.pattern();
  if (is_change_of_ratio(rule) || name.find("_relative") != std::string::npos) return Scale::relative;
  if (rule.metric == "speed.over_baseline") return Scale::ratio;
  if (group == "speed" || group == "bytes" || group == "storage" || group == "churn") return Scale::plain;
  if (group == "state_error") return Scale::ratio;
  if (has_a_unit(name)) return Scale::plain;
  if (!is_share(name)) return Scale::unknown;
  return group.ends_with("delta") || rule.against == Against::release ? Scale::difference : Scale::share;
}

const char* name_of(OnInconclusive value) {
  switch (value) {
    case OnInconclusive::pass:
      return "pass";
    case OnInconclusive::warn:
      return "warn";
    default:
      return "fail";
  }
}

const char* name_of(Pool pool) { return pool == Pool::each ? "each" : pool == Pool::questions ? "questions" : "tasks"; }

std::string number_text(double value, const Rule& rule) {
  switch (unit_of(rule)) {
    case Unit::percent:
      return fmt::format("{:+.6g} %", 100.0 * value);
    case Unit::points:
      return fmt::format("{:+.6g} points", 100.0 * value);
    case Unit::times:
      return fmt::format("{:.4g}×", value);
    case Unit::count:
      return count_text(std::llround(value));
    default:
      return fmt::format("{:.6g}", value);
  }
}

std::string spread_text(double value, const std::optional<Interval>& interval, const Rule& rule) {
  const Unit unit = unit_of(rule);
  if (unit == Unit::count) return number_text(value, rule);
  const bool hundredfold = unit == Unit::percent || unit == Unit::points;
  const auto low = interval ? std::optional(interval->low) : std::nullopt;
  const auto high = interval ? std::optional(interval->high) : std::nullopt;
  std::string text = reports::spread_text(spread(value, low, high, hundredfold ? 100.0 : 1.0));
  if (!hundredfold) std::erase(text, '+');  // the sign of differences
  return text + (unit == Unit::percent ? " %" : unit == Unit::points ? " points" : unit == Unit::times ? "×" : "");
}

std::string margin_text(const Rule& rule) {
  const auto number = [&](double value) { return number_text(value, rule); };
  const Margin& margin = rule.margin;
  if (margin.at_least && margin.at_most && *margin.at_least == *margin.at_most)
    return "exactly " + number(*margin.at_most);
  if (margin.at_least && margin.at_most)
    return fmt::format("from {} to {}", number(*margin.at_least), number(*margin.at_most));
  return margin.at_most ? "at most " + number(*margin.at_most) : "at least " + number(*margin.at_least);
}

}  // namespace replayeval::reports::gate
