// What every reader of tokens and text throws.
#pragma once

#include <stdexcept>

namespace replayeval::datasets {

// One line that names the file (or config key), the place in it and what was expected.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace replayeval::datasets
