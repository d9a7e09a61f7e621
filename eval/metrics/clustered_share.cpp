#include "eval/metrics/clustered_share.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace replayeval::metrics {

ItemSums sum_by_item(std::span<const double> values, std::span<const std::int64_t> item) {
  if (item.size() != values.size())
    throw std::invalid_argument("item has " + std::to_string(item.size()) + " entries, expected " +
                                std::to_string(values.size()));
  if (values.empty()) throw std::invalid_argument("no answers, expected at least 1");
  ItemSums sums;
  std::unordered_map<std::int64_t, std::size_t> place;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto [found, fresh] = place.try_emplace(item[i], sums.sum.size());
    if (fresh) {
      sums.sum.push_back(0.0);
      sums.count.push_back(0.0);
    }
    sums.sum[found->second] += values[i];
    sums.count[found->second] += 1.0;
    sums.total += values[i];
  }
  sums.n = static_cast<double>(values.size());
  return sums;
}

double effective_size(const ItemSums& sums, double independent_variance, double confidence) {
  const auto items = static_cast<double>(sums.items());
  if (items == sums.n) return sums.n;
  if (independent_variance <= 0.0 || sums.items() < 2) return items;
  double squares = 0.0;
  for (std::size_t i = 0; i < sums.sum.size(); ++i) {
    const double residual = sums.sum[i] - sums.mean() * sums.count[i];
    squares += residual * residual;
  }
  const double clustered_variance = items / (items - 1.0) * squares / (sums.n * sums.n);
  if (clustered_variance <= 0.0) return items;
  const auto reach = [&](double freedom) {
    return boost::math::quantile(boost::math::students_t(freedom), 0.5 + confidence / 2.0);
  };
  const double fewer = reach(sums.n - 1.0) / reach(items - 1.0);
  return std::min(sums.n, sums.n * independent_variance / clustered_variance * fewer * fewer);
}

}  // namespace replayeval::metrics
