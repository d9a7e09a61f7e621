// What stands between the facts of a recall document.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/recall/random.h"
#include "datasets/recall/segments.h"

namespace replayeval::datasets::recall {

// Lines of a text that are whole sentences: 40 to 300 characters, ending in . ! or ?, without double spaces.
std::vector<std::string> sentence_lines(std::string_view text);

// Tokens of three sentences, about: below that not every number of tokens can be met with whole ones.
std::int64_t few_sentences(Random random, const Count& count);

// Draws filler: lines of real text four times in five where there are any, else generated sentences.
class Filler {
 public:
  // `forbidden`: texts that filler must not hold, so that an answer stands only where the document says. A `single`
  // token makes up what no sentence fits into.
  Filler(std::span<const std::string> lines, Count count, Segment single, std::vector<std::string> forbidden = {});

  // Sentences of at most `room` tokens, until forty in a row do not fit; `room` becomes what is left.
  Segments gather(Random& random, std::int64_t& room) const;

  // Segments of exactly `room` tokens.
  Segments exactly(Random& random, std::int64_t room) const;

  // Adds to `filler`, or takes from it what was added last, until it is larger by exactly `room` tokens.
  void settle(Random& random, Segments& filler, std::int64_t room) const;

 private:
  Segment draw(Random& random, bool generated_only) const;
  bool allowed(const std::string& text) const;
  Segments sentences_that_sum(Random& random, std::int64_t room) const;

  std::span<const std::string> lines_;
  Count count_;
  Segment single_;
  std::vector<std::string> forbidden_;
};

}  // namespace replayeval::datasets::recall
