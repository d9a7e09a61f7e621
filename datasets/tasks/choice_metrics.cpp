#include "datasets/tasks/choice_metrics.h"

#include <algorithm>
#include <cmath>

#include "datasets/tasks/first_largest.h"
#include "datasets/tasks/python_text.h"

namespace replayeval::tasks {
namespace {

bool is_right(const TaskDocument& document, std::size_t choice) {
  return std::find(document.gold.begin(), document.gold.end(), choice) != document.gold.end();
}

// What the row shows for the right choice.
OrderedJson shown_gold(const TaskDocument& document) {
  if (document.gold.size() == 1) return document.gold[0];
  return document.gold;
}

MetricValue of_choice(std::string_view name, const TaskDocument& document, const std::vector<double>& values) {
  const double right = is_right(document, first_largest(values)) ? 1 : 0;
  return {std::string(name), right, 1, right};
}

std::vector<double> softmax(const std::vector<double>& values) {
  const double largest = *std::max_element(values.begin(), values.end());
  std::vector<double> shares;
  double sum = 0;
  for (const double value : values) sum += shares.emplace_back(std::exp(value - largest));
  for (double& share : shares) share /= sum;
  return shares;
}

MetricValue brier_score(const TaskDocument& document, const std::vector<double>& values) {
  const std::vector<double> shares = softmax(values);
  double score = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double distance = shares[i] - (is_right(document, i) ? 1 : 0);
    score += distance * distance;
  }
  return {"brier_score", score, 1, OrderedJson::array({shown_gold(document), shares})};
}

}  // namespace

MetricValue choice_metric(std::string_view name, const TaskDocument& document, std::span<const RequestScore> scores) {
  const std::size_t count = document.choices.size();
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(scores[i].log_likelihood);
  if (name == "brier_score") return brier_score(document, values);
  if (name == "exact_match") {
    const bool greedy = std::any_of(document.gold.begin(), document.gold.end(),
                                    [&](std::size_t choice) { return scores[choice].is_greedy; });
    return {std::string(name), greedy ? 1.0 : 0.0, 1, greedy ? 1 : 0};
  }
  if (name == "f1" || name == "mcc") {
    const std::size_t chosen = first_largest(values);
    const auto gold = static_cast<double>(document.gold.at(0));
    return {std::string(name), static_cast<double>(chosen), gold, OrderedJson::array({shown_gold(document), chosen})};
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (name == "acc_norm") values[i] /= static_cast<double>(code_point_count(document.choices[i]));
    if (name == "acc_bytes") values[i] /= static_cast<double>(document.choices[i].size());
    if (name == "acc_mutual_info") values[i] -= scores[count + i].log_likelihood;
  }
  return of_choice(name, document, values);
}

}  // namespace replayeval::tasks
