// Windows in the batches that a model decodes at once: equally long, so that no row is padded.
#pragma once

#include <optional>
#include <vector>

#include "datasets/windows.h"

namespace replayeval {

class WindowBatches {
 public:
  // full: the length of a full window. Full windows fill batches of up to `batch`; shorter ones go alone, as they come.
  WindowBatches(datasets::WindowReader& reader, std::int64_t full, std::int64_t batch);

  // Never empty; nothing at the end. The same reader gives the same batches in the same order.
  std::optional<std::vector<datasets::Window>> next();

 private:
  datasets::WindowReader& reader_;
  std::int64_t full_, batch_;
  std::vector<datasets::Window> waiting_;
};

}  // namespace replayeval
