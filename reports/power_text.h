// What a number of documents can show, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace replayeval::reports {

struct PowerNumbers {
  std::int64_t documents = 0;
  std::optional<double> detectable;  // the smallest difference that they show with 80 % power; absent: none
  std::optional<double> margin;      // that equivalence is tested within
  std::optional<std::int64_t> to_detect_margin, to_show_equivalence;  // documents, with 80 % power
};

// "1,313 documents show a difference of 1.8 points four times in five; for ±2 points, 1,077 would show one and 1,185
// would show equivalence"
std::string power_text(const PowerNumbers& numbers);

}  // namespace replayeval::reports
