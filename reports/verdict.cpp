#include "reports/verdict.h"

#include <fmt/format.h>

#include <cmath>

#include "reports/generation_table.h"
#include "reports/metric_names.h"
#include "reports/numbers.h"
#include "reports/recall_table.h"
#include "reports/task_table.h"

namespace replayeval::reports {
namespace {

const Delta* ratio_of(const Workload& workload, const std::string& arm) {
  const auto deltas = workload.deltas.find(arm);
  if (deltas == workload.deltas.end()) return nullptr;
  const auto delta = deltas->second.find(names::perplexity_ratio);
  return delta == deltas->second.end() ? nullptr : &delta->second;
}

// No token's distribution moved: not a matter of statistics.
bool nothing_differs(const Workload& workload, const std::string& arm, const Delta& delta) {
  const auto divergence = workload.divergence.find(arm);
  if (delta.value != 0.0 || divergence == workload.divergence.end()) return false;
  const auto& metrics = divergence->second;
  const auto largest = metrics.find(names::kl_max);
  const auto spread_of_p = metrics.find(names::dp_rms);
  return largest != metrics.end() && largest->second.value == 0.0 &&
         (spread_of_p == metrics.end() || spread_of_p->second.value == 0.0);
}

const char* how_much(double fraction) {
  const double percent = 100.0 * std::abs(fraction);
  if (std::abs(fraction) < least_slight_change) return "by a trace";
  if (percent < 0.1) return "slightly";
  return percent < 1.0 ? "noticeably" : "much";
}

}  // namespace

Verdict verdict(const Workload& workload, const std::string& arm) {
  if (workload.kind == "task") return task_verdict(workload, arm);
  if (workload.kind == "recall") return recall_verdict(workload, arm);
  if (workload.kind == "generation") return generation_verdict(workload, arm);
  const Delta* delta = ratio_of(workload, arm);
  if (delta == nullptr) return {.change = Change::unknown, .text = "not compared with the baseline"};
  if (nothing_differs(workload, arm, *delta)) {
    return {.change = Change::identical, .text = "identical to the baseline, token for token: ΔPPL 0 %"};
  }
  if (workload.data.is_object() && workload.data.value("weights", "") == "random") {
    return {.change = Change::unknown,
            .text = "random weights: logits differ from the baseline's, which says nothing about a model's quality"};
  }
  const Spread percent = spread(delta->value, delta->low, delta->high, 100.0);
  if (!delta->low || !delta->high) {
    return {.change = Change::unknown,
            .text = fmt::format("ΔPPL {} %, without an interval: too few documents or blocks to tell", percent.value)};
  }
  std::string figures = fmt::format("ΔPPL {} % [{}, {}]", percent.value, percent.low, percent.high);
  if (delta->confidence) figures += fmt::format(" ({:g} %)", 100.0 * *delta->confidence);
  const double chance = chance_of_worse(*delta);
  if (*delta->low <= 0.0 && *delta->high >= 0.0) {
    if (says_nothing(*delta, widest_perplexity))
      return {.change = Change::imprecise, .text = "too few documents to tell: " + figures, .chance = chance};
    return {.change = Change::none, .text = "no measurable change: " + figures, .chance = chance};
  }
  const bool worse = *delta->low > 0.0;
  return {.change = worse ? Change::worse : Change::better,
          .text = fmt::format("perplexity {} {}: {}", worse ? "rises" : "falls", how_much(delta->value), figures),
          .size = std::abs(delta->value),
          .chance = chance};
}

bool says_nothing(const Delta& delta, double widest) {
  return half_width(delta.low, delta.high).value_or(HUGE_VAL) > widest;
}

double chance_of_worse(const Delta& delta) { return (1.0 - delta.confidence.value_or(0.95)) / 2.0; }

Tint tint_of(const Verdict& verdict) {
  switch (verdict.change) {
    case Change::identical:
    case Change::none:
      return Tint::good;
    case Change::worse:
      return verdict.trace() ? Tint::warning : Tint::bad;
    case Change::better:
      return Tint::warning;
    case Change::imprecise:
    case Change::unknown:
      break;
  }
  return Tint::dim;
}

}  // namespace replayeval::reports
