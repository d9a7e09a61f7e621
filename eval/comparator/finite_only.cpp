#include "eval/comparator/finite_only.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace replayeval {

template <typename Number>
bool FiniteOnly::admit(const std::string& name, Number& number) {
  if (!std::isfinite(number.value)) {
    ++values_[name];
    return false;
  }
  if ((number.low && !std::isfinite(*number.low)) || (number.high && !std::isfinite(*number.high))) {
    ++intervals_[name];
    number.low.reset();
    number.high.reset();
  }
  return true;
}

void FiniteOnly::put(const std::string& arm, const std::string& name, reports::Metric metric) {
  if (admit(name, metric)) result_.arms[arm].metrics[name] = metric;
}

void FiniteOnly::put(const std::string& arm, const std::string& name, reports::Delta delta) {
  if (!admit("the difference of " + name, delta)) return;
  if (!delta.low) delta.confidence.reset();
  if (delta.p_value && !std::isfinite(*delta.p_value)) delta.p_value.reset();
  result_.deltas[arm][name] = std::move(delta);
}

std::vector<std::string> FiniteOnly::warnings() const {
  std::vector<std::string> warnings;
  const auto add = [&](const std::map<std::string, int>& counts, const char* what) {
    for (const auto& [name, count] : counts)
      warnings.push_back(fmt::format("{}: {} {}{} not finite, left out", name, count, what, count == 1 ? "" : "s"));
  };
  add(values_, "value");
  add(intervals_, "interval");
  return warnings;
}

}  // namespace replayeval
