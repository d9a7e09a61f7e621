#include "eval/comparator/generation/generation_summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "eval/comparator/estimates.h"
#include "eval/metrics/agreement.h"
#include "eval/metrics/degeneration.h"
#include "eval/metrics/paired_accuracy.h"
#include "eval/metrics/task_family.h"
#include "reports/metric_names.h"

namespace replayeval {
namespace {

namespace names = reports::names;

std::vector<metrics::Degeneration> degenerations(const GeneratedTexts& generated, std::size_t arm) {
  std::vector<metrics::Degeneration> signs;
  for (std::size_t i = 0; i < generated.sequences.size(); ++i) {
    const GeneratedSequence& sequence = generated.sequences[i][arm];
    signs.push_back(metrics::degeneration(sequence.tokens, generated.texts[i][arm], sequence.truncated()));
  }
  return signs;
}

// Where either arm had two equal logits to choose from when the sequences parted.
bool at_tie(const GeneratedSequence& baseline, const GeneratedSequence& arm, std::int64_t step) {
  const auto tie = [&](const GeneratedSequence& sequence) {
    const auto at = static_cast<std::size_t>(step);
    return at < sequence.ties.size() && sequence.ties[at];
  };
  return tie(baseline) || tie(arm);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Steps at which agreement is looked at: powers of two, and the limit.
std::vector<std::int64_t> agreement_steps(std::int64_t max_tokens) {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step < max_tokens; step *= 2) steps.push_back(step);
  steps.push_back(max_tokens);
  return steps;
}

void add_agreement_steps(const std::string& arm, const std::vector<metrics::Agreement>& agreements,
                         std::int64_t max_tokens, reports::Workload& result) {
  for (const std::int64_t step : agreement_steps(max_tokens)) {
    const auto same = std::count_if(agreements.begin(), agreements.end(), [&](const metrics::Agreement& agreement) {
      return agreement.identical() || *agreement.first_divergence >= step;
    });
    result.agreement.push_back({arm, step, static_cast<double>(same) / static_cast<double>(agreements.size())});
  }
}

void add_agreement(const RunContext& context, const GeneratedTexts& generated, std::size_t arm,
                   reports::Workload& result) {
  const std::string& name = context.arms[arm].name;
  std::vector<metrics::Agreement> agreements;
  std::vector<std::uint8_t> identical;
  std::vector<double> edit_share, divergence, distance, ties;  // the last three: of those that diverge
  for (const auto& sequences : generated.sequences) {
    const GeneratedSequence &baseline = sequences[context.baseline], &own = sequences[arm];
    const metrics::Agreement agreement = metrics::agreement(baseline.tokens, own.tokens);
    identical.push_back(agreement.identical() ? 1 : 0);
    edit_share.push_back(agreement.edit_share());
    if (!agreement.identical()) {
      divergence.push_back(static_cast<double>(*agreement.first_divergence));
      distance.push_back(static_cast<double>(agreement.edit_distance));
      ties.push_back(at_tie(baseline, own, *agreement.first_divergence) ? 1.0 : 0.0);
    }
    agreements.push_back(agreement);
  }
  add_agreement_steps(name, agreements, generated.max_tokens, result);
  const metrics::IntervalOptions options = interval_options(context.config);
  auto& measured = result.divergence[name];
  measured[names::identical] = metric_of(metrics::accuracy(identical, generated.item, options.confidence));
  metrics::IntervalOptions whole_items = options;
  whole_items.min_documents = 1;
  measured[names::edit_share] = metric_of(metrics::clustered_t(edit_share, generated.item, whole_items));
  if (divergence.empty()) return;
  const auto count = static_cast<std::int64_t>(divergence.size());
  measured[names::first_divergence_mean] = {mean(divergence), {}, {}, count};
  measured[names::first_divergence_median] = {median(divergence), {}, {}, count};
  measured[names::edit_distance_mean] = {mean(distance), {}, {}, count};
  if (generated.greedy) measured[names::began_at_tie] = {mean(ties), {}, {}, count};
}

// Eight signs are looked at, so that one of them strays easily.
nlohmann::json adjusted(const std::vector<metrics::NamedEstimate>& deltas) {
  std::vector<double> p_values;
  std::vector<std::string> metric;
  for (const metrics::NamedEstimate& delta : deltas) {
    if (!delta.estimate.p_value) continue;
    p_values.push_back(*delta.estimate.p_value);
    metric.push_back(delta.metric);
  }
  nlohmann::json json = nlohmann::json::object();
  const std::vector<double> holm = metrics::holm(p_values);
  for (std::size_t i = 0; i < holm.size(); ++i) json[metric[i]] = holm[i];
  return json;
}

}  // namespace

void summarise_generation(const RunContext& context, const GeneratedTexts& generated, reports::Workload& result) {
  const metrics::IntervalOptions options = interval_options(context.config);
  const std::vector<metrics::Degeneration> baseline = degenerations(generated, context.baseline);
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    const std::string& name = context.arms[arm].name;
    const std::vector<metrics::Degeneration> own = arm == context.baseline ? baseline : degenerations(generated, arm);
    for (const metrics::NamedEstimate& mean : metrics::degeneration_means(own, generated.item, options))
      result.arms[name].metrics[mean.metric] = metric_of(mean.estimate);
    if (arm == context.baseline) continue;
    const auto deltas = metrics::degeneration_deltas(baseline, own, generated.item, options);
    for (const metrics::NamedEstimate& delta : deltas) result.deltas[name][delta.metric] = delta_of(delta.estimate);
    result.data["degeneration_p"][name] = adjusted(deltas);
    add_agreement(context, generated, arm, result);
  }
}

}  // namespace replayeval
