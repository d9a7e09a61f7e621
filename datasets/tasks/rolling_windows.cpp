#include "datasets/tasks/rolling_windows.h"

#include <algorithm>
#include <stdexcept>

namespace replayeval::tasks {

std::vector<ScoringRequest> rolling_windows(std::span<const std::int32_t> tokens, std::int32_t prefix,
                                            std::int64_t max_length) {
  if (max_length < 1) throw std::invalid_argument("rolling_windows: max_length is below 1");
  std::vector<ScoringRequest> windows;
  const std::size_t length = static_cast<std::size_t>(max_length);
  for (std::size_t begin = 0; begin < tokens.size(); begin += length) {
    const std::size_t end = std::min(begin + length, tokens.size());
    ScoringRequest window;
    window.continuation.assign(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                               tokens.begin() + static_cast<std::ptrdiff_t>(end));
    if (begin == 0) {
      window.context = {prefix};
    } else {
      // The input, context and continuation but for its last token, is max_length long.
      window.context.assign(tokens.begin() + static_cast<std::ptrdiff_t>(end - length - 1),
                            tokens.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace replayeval::tasks
