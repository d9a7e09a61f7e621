#include "reports/curves.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace replayeval::reports {
namespace {

// A fall of log-likelihood is a rise of perplexity.
double percent_of_perplexity(double log_likelihood_delta) { return 100.0 * std::expm1(-log_likelihood_delta); }

std::vector<Curve> curves_of(const Results& results,
                             const std::function<std::vector<Curve::Point>(const std::string&)>& points_of) {
  std::vector<Curve> curves;
  const std::vector<std::string> names = arm_names(results);
  for (std::size_t arm = 0; arm < names.size(); ++arm) {
    std::vector<Curve::Point> points = points_of(names[arm]);
    if (!points.empty()) curves.push_back({arm, names[arm], std::move(points)});
  }
  return curves;
}

}  // namespace

std::vector<std::string> arm_names(const Results& results) {
  std::vector<std::string> names;
  for (const nlohmann::json& arm : results.arms) names.push_back(arm.at("name").get<std::string>());
  return names;
}

std::vector<Curve> perplexity_by_position(const Results& results, const Workload& workload) {
  return curves_of(results, [&](const std::string& arm) {
    std::vector<Curve::Point> points;
    for (std::size_t i = 0; i < workload.positions.size(); ++i) {
      const auto found = workload.positions[i].delta.find(arm);
      if (found == workload.positions[i].delta.end()) continue;
      const Delta& delta = found->second;
      Curve::Point point{.x = static_cast<double>(i), .y = percent_of_perplexity(delta.value), .low = {}, .high = {}};
      if (delta.low && delta.high) {
        point.low = percent_of_perplexity(*delta.high);
        point.high = percent_of_perplexity(*delta.low);
      }
      points.push_back(point);
    }
    return points;
  });
}

std::vector<Curve> state_error_by_position(const Results& results, const Workload& workload, const std::string& depth) {
  return curves_of(results, [&](const std::string& arm) {
    std::map<std::int64_t, double> worst;
    for (const StateError& error : workload.state_errors)
      if (error.arm == arm && error.depth == depth)
        worst[error.position] = std::max(worst[error.position], error.relative_frobenius);
    std::vector<Curve::Point> points;
    for (const auto& [position, error] : worst)
      if (error > 0.0) points.push_back({.x = static_cast<double>(position), .y = error, .low = {}, .high = {}});
    return points;
  });
}

std::vector<Curve> agreement_by_step(const Results& results, const Workload& workload) {
  return curves_of(results, [&](const std::string& arm) {
    std::vector<Curve::Point> points;
    for (const AgreementStep& row : workload.agreement)
      if (row.arm == arm)
        points.push_back({.x = static_cast<double>(row.step), .y = 100.0 * row.same, .low = {}, .high = {}});
    return points;
  });
}

}  // namespace replayeval::reports
