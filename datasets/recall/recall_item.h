// One document of synthetic recall, as token ids.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace replayeval::datasets {

// An answer in a document, all of it places in the document's tokens.
struct RecallAnswer {
  std::int64_t begin = 0, end = 0;  // of its tokens; tokens[begin - 1] is the last the model sees before it
  std::int64_t stated_begin = 0, stated_end = 0;  // from the first value that leads to it to the end of the last
  std::int64_t statements = 0;                    // how many values lead to it
  double depth = 0.0;                             // stated_begin as a share of the tokens before the first question

  std::int64_t distance() const { return begin - stated_begin; }
};

struct RecallItem {
  std::string id;  // "needle_single/4096/0.5/3", "facts/4096/any/3"
  std::string kind;
  std::int64_t length = 0;      // tokens.size(), exactly as asked for: prompt, questions and answers
  std::optional<double> depth;  // asked for: the share of filler before what matters; nothing: anywhere
  std::int64_t index = 0;       // among the items of its cell
  std::vector<std::int32_t> tokens;
  std::vector<RecallAnswer> answers;               // in order, at least one
  double chance = 0.0;                             // what a guess is worth that saw the document and not the question
  std::vector<std::vector<std::int32_t>> choices;  // each answer is one of these, if there are any

  // Decoding the prompt predicts the first token of the first answer. What follows it, the continuation, is known text
  // in which only answers are scored: an answer is right if every token of it is the most likely one.
  std::span<const std::int32_t> prompt() const {
    return std::span(tokens).first(static_cast<std::size_t>(answers.front().begin));
  }
  std::span<const std::int32_t> continuation() const {
    return std::span(tokens).subspan(static_cast<std::size_t>(answers.front().begin));
  }
  std::span<const std::int32_t> target(const RecallAnswer& answer) const {
    return std::span(tokens).subspan(static_cast<std::size_t>(answer.begin),
                                     static_cast<std::size_t>(answer.end - answer.begin));
  }
};

}  // namespace replayeval::datasets
