// Token ids of parts of text, such that the parts' ids one after the other are the text's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "datasets/recall/segments.h"
#include "datasets/tokenizer.h"

namespace replayeval::datasets::recall {

using Ids = std::vector<std::int32_t>;

// Remembers what it has encoded, so not for several threads at once.
class Pieces {
 public:
  // Throws DataError naming the tokenizer's file when words with a space before them have no ids of their own.
  explicit Pieces(std::shared_ptr<const Tokenizer> tokenizer);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // What the tokenizer puts before every text: its bos, or nothing.
  const Ids& prefix() const { return prefix_; }
  // Of text behind a space; the first segment of a document is taken to be, too.
  const Ids& after_space(const std::string& text);
  const Ids& of(const Segment& segment) { return segment.part == Part::stop ? stop_ : after_space(segment.text); }
  // A part of exactly one token, for the last token of a length: a word, or the full stop where words are longer.
  const Segment& single_token() const { return single_; }

  Count count() {
    return [this](const Segment& segment) { return static_cast<std::int64_t>(of(segment).size()); };
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool adds_space_ = false;  // the tokenizer puts a space before every text itself
  Ids prefix_, stop_;
  Segment single_;
  std::unordered_map<std::string, Ids> known_;
};

}  // namespace replayeval::datasets::recall
