// Drawing things that must not be alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace replayeval::datasets::recall {

// `count` different results of draw(), in the order drawn, none of which is in `taken`.
template <typename Draw>
std::vector<std::string> draw_different(std::int64_t count, Draw draw, const std::vector<std::string>& taken = {}) {
  std::vector<std::string> drawn;
  while (static_cast<std::int64_t>(drawn.size()) < count) {
    std::string candidate = draw();
    if (std::find(drawn.begin(), drawn.end(), candidate) == drawn.end() &&
        std::find(taken.begin(), taken.end(), candidate) == taken.end())
      drawn.push_back(std::move(candidate));
  }
  return drawn;
}

}  // namespace replayeval::datasets::recall
