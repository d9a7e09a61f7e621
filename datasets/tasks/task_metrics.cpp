#include "datasets/tasks/task_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "datasets/one_line.h"
#include "datasets/tasks/choice_metrics.h"

namespace replayeval::tasks {
namespace {

using datasets::one_line;

// In the order in which the harness's rows have them.
constexpr std::array<MetricDefinition, 16> definitions = {{
    {"acc", RequestType::multiple_choice, Aggregation::mean, true},
    {"f1", RequestType::multiple_choice, Aggregation::f1, true},
    {"mcc", RequestType::multiple_choice, Aggregation::mcc, true},
    {"acc_norm", RequestType::multiple_choice, Aggregation::mean, true},
    {"acc_bytes", RequestType::multiple_choice, Aggregation::mean, true},
    {"exact_match", RequestType::multiple_choice, Aggregation::mean, true},
    {"brier_score", RequestType::multiple_choice, Aggregation::mean, false},
    {"acc_mutual_info", RequestType::multiple_choice, Aggregation::mean, true},
    {"perplexity", RequestType::loglikelihood, Aggregation::perplexity, false},
    {"acc", RequestType::loglikelihood, Aggregation::mean, true},
    {"word_perplexity", RequestType::loglikelihood_rolling, Aggregation::weighted_perplexity, false},
    {"byte_perplexity", RequestType::loglikelihood_rolling, Aggregation::weighted_perplexity, false},
    {"bits_per_byte", RequestType::loglikelihood_rolling, Aggregation::bits_per_byte, false},
    {"exact_match", RequestType::generate_until, Aggregation::mean, true},
    {"contains", RequestType::generate_until, Aggregation::mean, true},
    {"f1", RequestType::generate_until, Aggregation::mean, true},
}};

MetricValue of_continuation(std::string_view name, const RequestScore& score) {
  if (name == "perplexity") return {std::string(name), score.log_likelihood, 1, score.log_likelihood};
  return {std::string(name), score.is_greedy ? 1.0 : 0.0, 1, score.is_greedy ? 1 : 0};
}

MetricValue of_text(std::string_view name, const TaskDocument& document, const RequestScore& score) {
  const std::int64_t count = name == "word_perplexity" ? document.words : document.bytes;
  return {std::string(name), score.log_likelihood, static_cast<double>(count),
          OrderedJson::array({score.log_likelihood, count})};
}

// Whether values are aggregated here as a task's metric_list names it.
bool aggregates_so(const MetricDefinition& definition, std::string_view name) {
  if (name.empty() || (name == "brier_score" && definition.name == name)) return true;
  switch (definition.aggregation) {
    case Aggregation::mean:
      return name == "mean" || name == "nanmean";  // no value is NaN
    case Aggregation::perplexity:
      return name == "perplexity";
    case Aggregation::weighted_perplexity:
      return name == "weighted_perplexity";
    case Aggregation::bits_per_byte:
      return name == "bits_per_byte";
    case Aggregation::f1:
      return name == "f1";
    case Aggregation::mcc:
      return name == "mcc" || name == "matthews_corrcoef";
  }
  return false;
}

std::vector<std::string_view> metric_names(RequestType type) {
  std::vector<std::string_view> names;
  for (const MetricDefinition& definition : definitions)
    if (definition.type == type) names.push_back(definition.name);
  return names;
}

double worth(std::string_view name, const std::optional<ExactMatch>& exact_match, const std::string& text,
             const std::string& target) {
  if (name == "exact_match") return exact_match->equal(text, target) ? 1 : 0;
  if (name == "contains") return contains(text, target) ? 1 : 0;
  return word_f1(text, target);
}

}  // namespace

const MetricDefinition* find_metric(std::string_view name, RequestType type) {
  const auto found = std::find_if(definitions.begin(), definitions.end(), [&](const MetricDefinition& definition) {
    return definition.name == name && definition.type == type;
  });
  return found == definitions.end() ? nullptr : &*found;
}

DocumentResponse response_of(const TaskDocument& document, std::span<const RequestScore> scores) {
  DocumentResponse response;
  if (document.type != RequestType::loglikelihood_rolling) {
    response.scores.assign(scores.begin(), scores.end());
    return response;
  }
  RequestScore sum{0, !scores.empty()};
  for (const RequestScore& score : scores) {
    sum.log_likelihood += score.log_likelihood;
    sum.is_greedy = sum.is_greedy && score.is_greedy;
  }
  response.scores = {sum};
  return response;
}

TaskScorer::TaskScorer(const TaskSettings& settings, const std::string& place)
    : type_(settings.type.value()), own_code_(settings.own_code) {
  for (const FilterSpec& filter : filters_of(settings)) filters_.emplace_back(filter, place);
  if (type_ != RequestType::generate_until)
    for (const FilterSpec& filter : filters_of(settings))
      for (const FilterStep& step : filter.steps)
        if (step.function != "take_first")
          throw datasets::DataError(
              fmt::format("{}: filter '{}': {}: cannot be applied to log-likelihoods; expected "
                          "take_first alone",
                          place, filter.name, step.function));
  for (const MetricSpec& spec : settings.metrics) {
    const MetricDefinition* definition = find_metric(spec.name, type_);
    if (definition == nullptr) {
      unknown_.push_back(spec.name);
      continue;
    }
    if (!aggregates_so(*definition, spec.aggregation)) {
      unknown_.push_back(fmt::format("{} aggregated by {}", spec.name, one_line(spec.aggregation)));
      continue;
    }
    metrics_.push_back({definition, std::nullopt});
    if (type_ == RequestType::generate_until && spec.name == "exact_match")
      metrics_.back().exact_match.emplace(spec.options, place + ": exact_match");
  }
  if (metrics_.empty())
    throw datasets::DataError(fmt::format(
        "{}: metrics: found none that is known for {}{}; expected one or more of {}", place, name_of(type_),
        unknown_.empty() ? "" : fmt::format(" ({})", fmt::join(unknown_, ", ")), fmt::join(metric_names(type_), ", ")));
  if (type_ != RequestType::generate_until)
    std::sort(metrics_.begin(), metrics_.end(),
              [](const Metric& left, const Metric& right) { return left.definition < right.definition; });
}

MetricValue TaskScorer::of_texts(const Metric& metric, const TaskDocument& document,
                                 const FilteredTexts& filtered) const {
  const std::string_view name = metric.definition->name;
  double sum = 0;
  for (const std::string& text : filtered.texts) {
    double best = 0;
    for (const std::string& target : document.targets)
      best = std::max(best, worth(name, metric.exact_match, text, target));
    sum += best;
  }
  // Over all responses, where no filter took one; of several targets one that fits any of them is enough.
  double value = sum / static_cast<double>(filtered.texts.size());
  if (document.several_targets && name == "exact_match") value = sum > 0 ? 1 : 0;
  return {std::string(name), value, 1, value};
}

std::vector<FilterScores> TaskScorer::score(const TaskDocument& document, const DocumentResponse& response) const {
  std::vector<FilterScores> all;
  for (const ResponseFilter& filter : filters_) {
    FilterScores scores{filter.name(), {}, {}};
    if (type_ == RequestType::generate_until) scores.texts = filter.apply(response.texts);
    for (const Metric& metric : metrics_) {
      const std::string_view name = metric.definition->name;
      switch (type_) {
        case RequestType::generate_until:
          scores.metrics.push_back(of_texts(metric, document, scores.texts));
          break;
        case RequestType::multiple_choice:
          scores.metrics.push_back(choice_metric(name, document, response.scores));
          break;
        case RequestType::loglikelihood:
          scores.metrics.push_back(of_continuation(name, response.scores.at(0)));
          break;
        case RequestType::loglikelihood_rolling:
          scores.metrics.push_back(of_text(name, document, response.scores.at(0)));
          break;
      }
    }
    all.push_back(std::move(scores));
  }
  return all;
}

std::vector<std::string> TaskScorer::warnings() const {
  std::vector<std::string> warnings;
  if (!unknown_.empty())
    warnings.push_back(fmt::format("not computed, as not known for {}: {}", name_of(type_), fmt::join(unknown_, ", ")));
  if (own_code_) {
    std::vector<std::string_view> names;
    for (const Metric& metric : metrics_) names.push_back(metric.definition->name);
    warnings.push_back(
        fmt::format("the task computes its metrics by code of its own; computed here as the harness defines "
                    "them: {}",
                    fmt::join(names, ", ")));
  }
  return warnings;
}

}  // namespace replayeval::tasks
