// Curves of very different size drawn in one plot leave the small ones flat: this parts them.
#pragma once

#include <algorithm>
#include <vector>

namespace replayeval::reports::html {

// Groups of decreasing size, in each the given order; in one group the largest is at most `factor` times the smallest
// that is not zero. Zeros join the last group. `size_of(item)` is not negative.
template <typename Item, typename SizeOf>
std::vector<std::vector<Item>> by_scale(const std::vector<Item>& items, SizeOf size_of, double factor = 30.0) {
  std::vector<double> sizes;
  for (const Item& item : items) sizes.push_back(size_of(item));
  std::sort(sizes.rbegin(), sizes.rend());
  std::vector<double> largest;  // of each group
  for (const double size : sizes)
    if (largest.empty() || (size > 0.0 && size * factor < largest.back())) largest.push_back(size);
  std::vector<std::vector<Item>> groups(largest.size());
  for (const Item& item : items) {
    std::size_t group = largest.size();
    const double size = size_of(item);
    while (group > 1 && largest[group - 1] < size) --group;
    groups[group - 1].push_back(item);
  }
  return groups;
}

}  // namespace replayeval::reports::html
