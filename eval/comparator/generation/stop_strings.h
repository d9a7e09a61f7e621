// Where a generated text ends: at the first stop string, or at an end-of-sequence token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "datasets/tokenizer.h"

namespace replayeval {

class StopStrings {
 public:
  // `tokenizer` may be null where there are no stops.
  StopStrings(std::shared_ptr<const datasets::Tokenizer> tokenizer, std::vector<std::string> stops);

  // Whether the text of `tokens` holds a stop string, given that it held none without the newest token.
  bool reached(const std::vector<std::int32_t>& tokens) const;
  // `text` up to its first stop string; of several that begin there, whichever.
  std::string cut(const std::string& text) const;

 private:
  std::shared_ptr<const datasets::Tokenizer> tokenizer_;
  std::vector<std::string> stops_;
  std::size_t longest_ = 0;
};

}  // namespace replayeval
