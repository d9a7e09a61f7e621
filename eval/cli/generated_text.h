// A generated text as it grows, token by token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datasets/tokenizer.h"
#include "eval/comparator/generation/stop_strings.h"

namespace replayeval {

class GeneratedText {
 public:
  GeneratedText(std::shared_ptr<const datasets::Tokenizer> tokenizer, const std::vector<std::string>& stops);

  // What can be shown more with one more token: neither bytes of a character that is not whole yet nor what may become
  // a stop string.
  std::string add(std::int32_t token);
  // What is left once no token follows.
  std::string rest();

 private:
  std::string up_to(std::size_t end);

  std::shared_ptr<const datasets::Tokenizer> tokenizer_;
  StopStrings stops_;
  std::size_t held_back_ = 0;  // bytes that may begin a stop string
  std::vector<std::int32_t> tokens_;
  std::size_t shown_ = 0;  // bytes
};

}  // namespace replayeval
