#include "eval/metrics/power.h"

#include <fmt/format.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <stdexcept>

#include "eval/metrics/score_interval.h"

namespace replayeval::metrics {
namespace {

double z(double probability) { return boost::math::quantile(boost::math::normal(), probability); }

void check_share(const char* name, double value) {
  if (!(value > 0.0 && value <= 1.0))
    throw std::invalid_argument(fmt::format("{} is {}, expected a number above 0 and at most 1", name, value));
}

void check_positive(const char* name, double value) {
  if (!(value > 0.0 && std::isfinite(value)))
    throw std::invalid_argument(fmt::format("{} is {}, expected a number above 0", name, value));
}

void check_power(const Power& power) {
  for (const auto& [name, value] : {std::pair{"confidence", power.confidence}, std::pair{"power", power.power}})
    if (!(value > 0.0 && value < 1.0))
      throw std::invalid_argument(fmt::format("{} is {}, expected a number between 0 and 1", name, value));
}

double exact_pairs_to_detect(double delta, double discordant, const Power& power) {
  const double reach =
      z(0.5 + power.confidence / 2.0) * std::sqrt(discordant) + z(power.power) * std::sqrt(discordant - delta * delta);
  return std::pow(reach / delta, 2);
}

std::int64_t round_up(double count) { return static_cast<std::int64_t>(std::ceil(count)); }

double scaled_units(double reach, double delta, double standard_error, std::int64_t units) {
  if (units < 2) throw std::invalid_argument(fmt::format("units is {}, expected 2 or more", units));
  return static_cast<double>(units) * std::pow(reach * standard_error / delta, 2);
}

// Of a two-sided test, and of two one-sided ones at a true difference of zero.
double detection_reach(const Power& power) { return z(0.5 + power.confidence / 2.0) + z(power.power); }
double equivalence_reach(const Power& power) { return z(power.confidence) + z((1.0 + power.power) / 2.0); }

}  // namespace

double planning_discordance(const PairedAccuracy& accuracy) {
  const DiscordantPairs pairs = accuracy.effective_pairs();
  return (pairs.gained + pairs.lost + 0.5) / (pairs.n + 0.5);
}

std::int64_t pairs_to_detect(double delta, double discordant, const Power& power) {
  check_power(power);
  check_share("discordant", discordant);
  check_share("delta", delta);
  if (delta > discordant)
    throw std::invalid_argument(
        fmt::format("delta is {}, expected at most the discordant share {}", delta, discordant));
  return round_up(exact_pairs_to_detect(delta, discordant, power));
}

std::optional<double> minimum_detectable_delta(double pairs, double discordant, const Power& power) {
  check_power(power);
  check_share("discordant", discordant);
  check_positive("pairs", pairs);
  if (exact_pairs_to_detect(discordant, discordant, power) > pairs) return std::nullopt;
  double missed = 0.0, found = discordant;
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (missed + found);
    (exact_pairs_to_detect(middle, discordant, power) > pairs ? missed : found) = middle;
  }
  return found;
}

std::int64_t pairs_to_show_equivalence(double margin, double discordant, const Power& power) {
  check_power(power);
  check_share("discordant", discordant);
  check_share("margin", margin);
  const double at_margin = score_variance({discordant / 2.0, discordant / 2.0, 1.0}, margin);
  const double reach =
      z(power.confidence) * std::sqrt(at_margin) + z((1.0 + power.power) / 2.0) * std::sqrt(discordant);
  return round_up(std::pow(reach / margin, 2));
}

double minimum_detectable_mean(double standard_error, const Power& power) {
  check_power(power);
  check_positive("standard_error", standard_error);
  return detection_reach(power) * standard_error;
}

std::int64_t units_to_detect(double delta, double standard_error, std::int64_t units, const Power& power) {
  check_power(power);
  check_positive("delta", delta);
  check_positive("standard_error", standard_error);
  return round_up(scaled_units(detection_reach(power), delta, standard_error, units));
}

std::int64_t units_to_show_equivalence(double margin, double standard_error, std::int64_t units, const Power& power) {
  check_power(power);
  check_positive("margin", margin);
  check_positive("standard_error", standard_error);
  return round_up(scaled_units(equivalence_reach(power), margin, standard_error, units));
}

}  // namespace replayeval::metrics
