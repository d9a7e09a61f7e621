#include "reports/gate/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <set>

#include "reports/consistency.h"
#include "reports/gate/release.h"
#include "reports/missing_workloads.h"
#include "reports/numbers.h"
#include "reports/results_io.h"

namespace replayeval::reports::gate {
namespace {

Effect effect_of(Word word, OnInconclusive inconclusive) {
  if (word == Word::pass) return Effect::pass;
  if (word != Word::inconclusive) return Effect::fail;
  return inconclusive == OnInconclusive::fail   ? Effect::fail
         : inconclusive == OnInconclusive::warn ? Effect::warn
                                                : Effect::pass;
}

// An interval of less confidence than the rule asks for cannot speak for it. One of more is only more careful.
std::string too_little_confidence(const Rule& rule, const Measurement& measured) {
  constexpr double rounding = 1e-9;
  if (!measured.interval || !measured.confidence || *measured.confidence >= rule.confidence - rounding) return "";
  return fmt::format("the interval is of {:g} % confidence, the rule asks for {:g} %; run with `confidence: {:g}`",
                     100.0 * *measured.confidence, 100.0 * rule.confidence, rule.confidence);
}

std::int64_t units_behind(const Measurement& measured) {
  const std::int64_t many = fewest_units_to_pass;
  return std::min(measured.units.value_or(many), measured.n.value_or(many));
}

std::string without_interval(const Measurement& measured) {
  std::string why = "no interval was computed";
  if (const std::int64_t units = units_behind(measured); units < fewest_units_to_pass)
    why += fmt::format(" from {} {}", units, units == 1 ? "document or block" : "documents or blocks");
  return why + "; `compare: value` holds the value itself against the margin";
}

// Why an interval that lies inside the margin does not let the change through.
std::string too_few_units(const Measurement& measured) {
  const std::int64_t units = units_behind(measured);
  if (units >= fewest_units_to_pass) return "";
  return fmt::format("the interval is of {} documents or blocks, too few to vouch for a pass; expected {} or more",
                     units, fewest_units_to_pass);
}

Judgement judge_one(const Rule& rule, Measurement measured) {
  Judgement judgement;
  judgement.rule = rule;
  const bool by_value = rule.compare == Compare::value;
  if (measured.fault.empty() && !std::isfinite(measured.value)) measured.fault = "the value is not a finite number";
  if (measured.fault.empty() && !by_value)
    measured.fault = measured.interval ? too_little_confidence(rule, measured) : without_interval(measured);
  if (!measured.fault.empty()) {
    judgement.word = Word::unusable;
  } else if (by_value) {
    judgement.word = word_for({measured.value, measured.value}, rule.margin);
  } else {
    judgement.word = word_for(*measured.interval, rule.margin);
    if (judgement.word == Word::pass && measured.doubt.empty()) measured.doubt = too_few_units(measured);
  }
  if (judgement.word != Word::unusable && !measured.doubt.empty()) judgement.word = Word::inconclusive;
  judgement.effect = effect_of(judgement.word, rule.inconclusive);
  if (!by_value && judgement.word != Word::unusable && measured.doubt.empty())
    judgement.needed = needed_to_decide(measured, rule.margin);
  judgement.measured = std::move(measured);
  return judgement;
}

double z(double probability) { return boost::math::quantile(boost::math::normal(), probability); }

// Workloads that were not run and that no rule speaks of.
std::vector<std::string> warnings_of(const Results& results, const std::vector<Judgement>& judgements) {
  std::set<std::string> judged;
  for (const Judgement& judgement : judgements) judged.insert(judgement.measured.workload);
  std::vector<std::string> warnings;
  for (const std::string& missing : missing_workloads(results))
    if (!judged.contains(missing))
      warnings.push_back(
          fmt::format("workload '{}' of the config is not in the results, and no rule asks for it", missing));
  return warnings;
}

// How many tokens or samples clear a bound that is `distance` from the true value, where n gave an interval that
// reaches `half` towards it. Of a mean, whose interval shrinks with the root of n: distance >= (z_interval + z_power)
// half / z_interval sqrt(n / n'), as eval/metrics/power.h has it for a difference from zero. Of a difference of two
// shares by a score interval (eval/metrics/score_interval.h), which without a pair that differs shrinks with n: half
// solves n half² = z² (d + half) where the share d of the pairs differs, and n' = (z_interval sqrt(d + distance) +
// z_power sqrt(d))² / distance² (Nam, Biometrics 53, 1997, to first order). Half a pair is added: none seen is not none
// to come.
double needed_to_clear(const Measurement& measured, double half, double distance, double z_interval, double z_power) {
  const auto n = static_cast<double>(*measured.n);
  if (!measured.of_shares) return n * std::pow((z_interval + z_power) * half / (z_interval * distance), 2);
  const double differing = std::max(n * std::pow(half / z_interval, 2) - half, 0.5 / n);
  return std::pow((z_interval * std::sqrt(differing + distance) + z_power * std::sqrt(differing)) / distance, 2);
}

}  // namespace

Word word_for(const Interval& interval, const Margin& margin) {
  const double low = margin.at_least.value_or(-HUGE_VAL), high = margin.at_most.value_or(HUGE_VAL);
  if (interval.low > high || interval.high < low) return Word::regression;
  return interval.low >= low && interval.high <= high ? Word::pass : Word::inconclusive;
}

// Between two bounds both sides must clear, each with half of what may fail.
std::optional<std::int64_t> needed_to_decide(const Measurement& measured, const Margin& margin, double power) {
  if (!measured.interval || !measured.confidence || !measured.n || !measured.fault.empty()) return std::nullopt;
  if (*measured.confidence <= 0.0 || *measured.confidence >= 1.0) return std::nullopt;
  const bool between =
      margin.at_least && margin.at_most && measured.value > *margin.at_least && measured.value < *margin.at_most;
  const double z_interval = z(0.5 + *measured.confidence / 2.0), z_power = z(between ? (1.0 + power) / 2.0 : power);
  double most = 0.0;
  for (const auto& bound : {margin.at_least, margin.at_most}) {
    if (!bound) continue;
    const double distance = std::abs(measured.value - *bound);
    const double half =
        measured.value < *bound ? measured.interval->high - measured.value : measured.value - measured.interval->low;
    // Outside, clearing the bound that was crossed is enough.
    const bool crossed = (margin.at_most && bound == margin.at_most && measured.value > *bound) ||
                         (margin.at_least && bound == margin.at_least && measured.value < *bound);
    if (distance == 0.0) return std::nullopt;
    const double needed = needed_to_clear(measured, half, distance, z_interval, z_power);
    if (crossed) {
      most = needed;
      break;
    }
    most = std::max(most, needed);
  }
  constexpr double largest = 9.0e15;
  if (!(most < largest)) return std::nullopt;
  return std::max<std::int64_t>(2, static_cast<std::int64_t>(std::ceil(most)));
}

namespace {

// A release that no rule looks at would seem to have been compared with.
void check_that_a_rule_is_against(const NamedRun& release, const Policy& policy) {
  if (std::any_of(policy.rules.begin(), policy.rules.end(),
                  [](const Rule& rule) { return rule.against == Against::release; }))
    return;
  throw ResultsError(
      fmt::format("--baseline {}: no rule of policy '{}' is `against: release`, so nothing would be compared with it; "
                  "expected such "
                  "a rule, or no --baseline",
                  release.name, policy.name));
}

}  // namespace

Outcome judge(const Policy& policy, const NamedRun& run, const std::optional<NamedRun>& given_release) {
  if (policy.rules.empty()) throw ResultsError("policy '" + policy.name + "' has no rules; expected at least one");
  if (run.results.workloads.empty())
    throw ResultsError(run.name + ": /workloads is empty: nothing was run, so there is nothing to judge");
  if (given_release) check_that_a_rule_is_against(*given_release, policy);
  check_consistency(run.results, run.name);
  std::optional<NamedRun> release;
  if (given_release) {
    check_consistency(given_release->results, given_release->name);
    release.emplace(
        NamedRun{given_release->name, given_release->results, are_one_run(run.results, given_release->results)});
  }
  Outcome outcome;
  outcome.policy = policy.name;
  for (const Rule& rule : policy.rules)
    for (Measurement& measured : measure(rule, run, release))
      outcome.judgements.push_back(judge_one(rule, std::move(measured)));
  outcome.warnings = warnings_of(run.results, outcome.judgements);
  if (release && release->is_the_run)
    outcome.warnings.push_back(
        fmt::format("{} holds the run's own results: every change since it is 0", release->name));
  return outcome;
}

int Outcome::exit_code() const {
  constexpr int pass = 0, regression = 1, inconclusive = 2, unusable = 3;
  if (judgements.empty()) return unusable;
  const auto any = [&](Word word) {
    return std::any_of(judgements.begin(), judgements.end(), [&](const Judgement& judgement) {
      return judgement.word == word && judgement.effect == Effect::fail;
    });
  };
  if (any(Word::regression)) return regression;
  if (any(Word::unusable)) return unusable;
  return any(Word::inconclusive) ? inconclusive : pass;
}

const char* name_of(Word word) {
  switch (word) {
    case Word::pass:
      return "pass";
    case Word::regression:
      return "regression";
    case Word::inconclusive:
      return "inconclusive";
    default:
      return "unusable";
  }
}

const char* name_of(Effect effect) {
  return effect == Effect::pass ? "pass" : effect == Effect::warn ? "warn" : "fail";
}

std::string subject(const Measurement& measured) {
  std::string text = measured.metric;
  if (!measured.arm.empty()) text += fmt::format(" of arm '{}'", measured.arm);
  return text + (measured.workload.empty() ? "" : fmt::format(" on '{}'", measured.workload));
}

std::string found_text(const Judgement& judgement) {
  const char* since = judgement.rule.against == Against::release ? "change since the release " : "";
  const Measurement& measured = judgement.measured;
  const bool by_value = judgement.rule.compare == Compare::value;
  std::string text = since + spread_text(measured.value, by_value ? std::nullopt : measured.interval, judgement.rule);
  if (!by_value && measured.interval && measured.confidence)
    text += fmt::format(" ({:g} %)", 100.0 * *measured.confidence);
  return text;
}

std::string sentence(const Judgement& judgement) {
  const Measurement& measured = judgement.measured;
  if (judgement.word == Word::unusable) return fmt::format("{}: {}", subject(measured), measured.fault);
  std::string text =
      fmt::format("{}: {}, expected {}", subject(measured), found_text(judgement), margin_text(judgement.rule));
  if (!measured.doubt.empty()) text += "; " + measured.doubt;
  return text;
}

std::string need_text(const Judgement& judgement) {
  const Measurement& measured = judgement.measured;
  if (judgement.word != Word::inconclusive || !measured.interval || !measured.doubt.empty()) return "";
  if (!judgement.needed)
    return measured.n ? "the value sits so close to the bound that no number of " + measured.unit + " is sure to decide"
                      : "";
  const std::int64_t more = *judgement.needed - *measured.n;
  if (more <= 0) return "";
  return fmt::format("{} more {} ({} in all) would decide four times in five if the true value is the one found",
                     count_text(more), measured.unit, count_text(*judgement.needed));
}

}  // namespace replayeval::reports::gate
