#include "reports/power_text.h"

#include <fmt/format.h>

#include "reports/numbers.h"

namespace replayeval::reports {

std::string power_text(const PowerNumbers& numbers) {
  std::string text = count_text(numbers.documents) + " documents";
  if (numbers.detectable)
    text +=
        fmt::format(" show a difference of {} points four times in five", significant(100.0 * *numbers.detectable, 2));
  else
    text += ": too few answers differ for a difference to be shown four times in five, were they all on one side";
  if (!numbers.margin || !numbers.to_show_equivalence) return text;
  text += fmt::format("; for ±{:g} points,", 100.0 * *numbers.margin);
  if (numbers.to_detect_margin) text += fmt::format(" {} would show one and", count_text(*numbers.to_detect_margin));
  return text + fmt::format(" {} would show equivalence", count_text(*numbers.to_show_equivalence));
}

}  // namespace replayeval::reports
