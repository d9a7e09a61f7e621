#include "reports/html/svg/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "reports/html/svg/drawing.h"
#include "reports/numbers.h"

namespace replayeval::reports::html::svg {
namespace {

// The smallest of 1, 2, 5, 10, … times a power of ten that cuts `range` into at most `pieces`.
double step_of(double range, int pieces) {
  const double raw = range / pieces;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * (1.0 - 1e-9)) return factor * power;
  return 10.0 * power;
}

std::string label_of(double value, double step) {
  if (std::abs(value) < step * 1e-6) return "0";
  const double largest = std::abs(value);
  if (largest >= 1e6 || largest < 1e-3) return fmt::format("{:.2g}", value);
  if (step >= 1.0) return count_text(std::llround(value));
  return fmt::format("{:.{}f}", value, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
}

}  // namespace

Axis::Axis(double low, double high, double from, double to, bool logarithmic)
    : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic) {}

Axis Axis::linear(double low, double high, double from, double to, int ticks) {
  if (!std::isfinite(low) || !std::isfinite(high)) return linear(0.0, 1.0, from, to, ticks);
  if (const double size = std::max(std::abs(low), std::abs(high)); !(high - low > 1e-9 * size)) {
    const double room = size == 0.0 ? 1.0 : 0.1 * size;
    low -= room;
    high += room;
  }
  Axis axis(low, high, from, to, false);
  const double step = step_of(high - low, ticks);
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i <= ticks + 1 && (first + i) * step <= high + 1e-9 * step; ++i)
    axis.ticks_.push_back({(first + i) * step, label_of((first + i) * step, step)});
  return axis;
}

Axis Axis::logarithmic(double low, double high, double from, double to, int ticks) {
  if (!(low > 0.0) || !std::isfinite(high) || high < low) return logarithmic(0.1, 1.0, from, to, ticks);
  int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  if (first == last) --first;
  Axis axis(std::pow(10.0, first), std::pow(10.0, last), from, to, true);
  const int every = std::max(1, (last - first + ticks - 1) / ticks);
  for (int exponent = last - (last - first) / every * every; exponent <= last; exponent += every)
    axis.ticks_.push_back({std::pow(10.0, exponent), power_of_ten(exponent)});
  return axis;
}

Axis Axis::named(double low, double high, double from, double to, std::vector<Tick> ticks) {
  Axis axis(low, high, from, to, false);
  axis.ticks_ = std::move(ticks);
  return axis;
}

double Axis::place(double value) const {
  const double clamped = std::clamp(value, low_, high_);
  const double share =
      logarithmic_ ? std::log(clamped / low_) / std::log(high_ / low_) : (clamped - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

double Axis::widest_label() const {
  double widest = 0.0;
  for (const Tick& tick : ticks_) widest = std::max(widest, width_of(tick.label));
  return widest;
}

std::string power_of_ten(int exponent) {
  if (exponent >= -3 && exponent <= 3) return fmt::format("{:g}", std::pow(10.0, exponent));
  constexpr std::array digits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) text += digits.at(static_cast<std::size_t>(digit - '0'));
  return text;
}

}  // namespace replayeval::reports::html::svg
