#include "reports/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace replayeval::reports {
namespace {

// The decimal exponent of `value` once it is rounded to `digits` significant digits; value != 0.
int exponent_of(double value, int digits) {
  const std::string text = fmt::format("{:.{}e}", std::abs(value), std::max(0, digits - 1));
  return std::stoi(text.substr(text.find('e') + 1));
}

constexpr int smallest_fixed = -3;  // 0.001
constexpr int largest_fixed = 4;    // 99999

}  // namespace

std::string significant(double value, int digits) {
  if (value == 0.0) return "0";
  const int exponent = exponent_of(value, digits);
  if (exponent < smallest_fixed || exponent > largest_fixed)
    return fmt::format("{:.{}e}", value, std::max(0, digits - 1));
  return fmt::format("{:.{}f}", value, std::max(0, digits - 1 - exponent));
}

std::string with_sign(double value, int digits) { return (value > 0.0 ? "+" : "") + significant(value, digits); }

Spread spread(double value, const std::optional<double>& low, const std::optional<double>& high, double scale) {
  const double scaled = value * scale;
  if (!low || !high) return {.value = with_sign(scaled, 4), .low = "", .high = ""};
  const double half_width = std::abs(*high - *low) * scale / 2;
  const double largest = std::max({std::abs(scaled), std::abs(*low * scale), std::abs(*high * scale)});
  if (largest == 0.0) return {.value = "0", .low = "0", .high = "0"};
  // The last digit that means something; an interval without width says nothing about it.
  const int last = half_width > 0.0 ? exponent_of(half_width, 2) - 1 : exponent_of(largest, 4) - 3;
  const int top = exponent_of(largest, 2);
  const auto text = [&](double number) -> std::string {
    if (number == 0.0) return "0";
    const std::string sign = number > 0.0 ? "+" : "";
    if (top >= smallest_fixed && top <= largest_fixed) {
      const std::string digits = fmt::format("{:.{}f}", std::abs(number), std::max(0, -last));
      if (digits.find_first_not_of("0.") == std::string::npos) return digits;  // what rounds to zero has no sign
      return (number > 0.0 ? "+" : "-") + digits;
    }
    return sign + fmt::format("{:.{}e}", number, std::clamp(exponent_of(number, 2) - last, 0, 6));
  };
  return {.value = text(scaled), .low = text(*low * scale), .high = text(*high * scale)};
}

std::string spread_text(const Spread& spread) {
  return spread.low.empty() ? spread.value : fmt::format("{} [{}, {}]", spread.value, spread.low, spread.high);
}

std::string rounded(double value, const std::optional<double>& uncertainty, int digits) {
  if (!uncertainty || !(*uncertainty > 0.0)) return significant(value, digits);
  const int last = exponent_of(*uncertainty, 2) - 1;  // the last digit that means something
  if (value == 0.0) return "0";
  const int exponent = std::max(last, exponent_of(value, 2));
  if (exponent < smallest_fixed || exponent > largest_fixed)
    return fmt::format("{:.{}e}", value, std::clamp(exponent - last, 0, 6));
  return fmt::format("{:.{}f}", value, std::max(0, -last));
}

std::optional<double> half_width(const std::optional<double>& low, const std::optional<double>& high) {
  return low && high ? std::optional<double>(std::abs(*high - *low) / 2.0) : std::nullopt;
}

std::string count_text(std::int64_t count) {
  std::string text = std::to_string(count);
  const std::size_t first_digit = count < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string seconds_text(double seconds) {
  if (seconds == 0.0) return "0 s";
  if (seconds < 1e-3) return significant(seconds * 1e6, 3) + " µs";
  if (seconds < 1.0) return significant(seconds * 1e3, 3) + " ms";
  if (seconds < 120.0) return significant(seconds, 3) + " s";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

std::string bytes_text(double bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024.0 && unit + 1 < units.size()) {
    bytes /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

double bytes_of_text(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, double>, 9> units{{{"B", 1.0},
                                                                      {"KiB", 0x1p10},
                                                                      {"MiB", 0x1p20},
                                                                      {"GiB", 0x1p30},
                                                                      {"TiB", 0x1p40},
                                                                      {"kB", 1e3},
                                                                      {"MB", 1e6},
                                                                      {"GB", 1e9},
                                                                      {"TB", 1e12}}};
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = std::find_if(units.begin(), units.end(), [&](const auto& known) { return known.first == unit; });
  if (error != std::errc() || found == units.end() || !std::isfinite(number) || number <= 0.0)
    throw std::invalid_argument(
        fmt::format("'{}' is no amount of memory; expected one with its unit, like 80GiB", text));
  constexpr double most = 0x1p60;  // far beyond any machine, and its count of sequences still fits an int64
  if (number * found->second > most)
    throw std::invalid_argument(fmt::format("'{}' is no amount of memory; expected at most 1048576TiB", text));
  return number * found->second;
}

}  // namespace replayeval::reports
