#include "eval/metrics/sign_flip_test.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

namespace replayeval::metrics {
namespace {

// Below this a term is lost in the sum that it enters.
constexpr double negligible = 1e-300;

// Adds `count` items of one size, each taken with probability 1/2, to the distribution of the sum of those taken.
std::vector<double> add_items(const std::vector<double>& before, std::int64_t size, std::int64_t count) {
  const boost::math::binomial taken(static_cast<double>(count), 0.5);
  std::vector<double> after(before.size() + static_cast<std::size_t>(size * count), 0.0);
  for (std::int64_t k = 0; k <= count; ++k) {
    const double probability = boost::math::pdf(taken, static_cast<double>(k));
    if (probability < negligible) continue;
    const auto offset = static_cast<std::size_t>(size * k);
    for (std::size_t s = 0; s < before.size(); ++s) after[offset + s] += probability * before[s];
  }
  return after;
}

}  // namespace

double sign_flip_test(std::span<const std::int64_t> differences) {
  std::map<std::int64_t, std::int64_t> items_of_size;
  std::int64_t sum = 0, reach = 0;
  for (const std::int64_t difference : differences) {
    if (difference == 0) continue;
    ++items_of_size[std::abs(difference)];
    sum += difference;
    reach += std::abs(difference);
  }
  std::vector<double> taken{1.0};
  for (const auto& [size, count] : items_of_size) taken = add_items(taken, size, count);
  // A flipped sum is 2 s - reach where s is the sum of the items taken. Both tails are the same by symmetry.
  double p_value = 0.0;
  for (std::int64_t s = 0; s <= reach; ++s)
    if (std::abs(2 * s - reach) >= std::abs(sum)) p_value += taken[static_cast<std::size_t>(s)];
  return std::min(1.0, p_value);
}

}  // namespace replayeval::metrics
