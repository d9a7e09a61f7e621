// argmax as NumPy has it.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace replayeval::tasks {

// The first of the largest values; the first NaN, if there is one. `values` is not empty.
inline std::size_t first_largest(std::span<const double> values) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return i;
    if (values[i] > values[best]) best = i;
  }
  return best;
}

}  // namespace replayeval::tasks
