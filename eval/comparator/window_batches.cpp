#include "eval/comparator/window_batches.h"

#include <utility>

namespace replayeval {

WindowBatches::WindowBatches(datasets::WindowReader& reader, std::int64_t full, std::int64_t batch)
    : reader_(reader), full_(full), batch_(batch) {}

std::optional<std::vector<datasets::Window>> WindowBatches::next() {
  while (std::optional<datasets::Window> window = reader_.next()) {
    if (window->input_count() != full_) return std::vector{*std::move(window)};
    waiting_.push_back(*std::move(window));
    if (static_cast<std::int64_t>(waiting_.size()) == batch_) return std::exchange(waiting_, {});
  }
  if (waiting_.empty()) return std::nullopt;
  return std::exchange(waiting_, {});
}

}  // namespace replayeval
