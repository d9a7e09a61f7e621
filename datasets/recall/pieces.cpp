#include "datasets/recall/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "datasets/recall/words.h"

namespace replayeval::datasets::recall {
namespace {

constexpr std::size_t most_known = 200000;  // parts of text, tens of megabytes

bool ends_in(const Ids& whole, const Ids& begin, const Ids& end) {
  return whole.size() == begin.size() + end.size() && std::equal(begin.begin(), begin.end(), whole.begin()) &&
         std::equal(end.begin(), end.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin.size()));
}

// The ids before a text's own, as the tokenizer's files ask for them.
Ids ids_before(const Tokenizer& tokenizer) {
  const Ids text = tokenizer.encode("the");
  const Ids whole = tokenizer.add_special_tokens(text);
  return {whole.begin(), std::search(whole.begin(), whole.end(), text.begin(), text.end())};
}

}  // namespace

Pieces::Pieces(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), prefix_(ids_before(*tokenizer_)) {
  const Ids first = tokenizer_->encode("the"), both = tokenizer_->encode("the river");
  adds_space_ = ends_in(both, first, tokenizer_->encode("river"));
  if (!adds_space_ && !ends_in(both, first, tokenizer_->encode(" river")))
    throw DataError(
        fmt::format("{}: the ids of \"the river\" are not those of its words one after the other; recall "
                    "documents need a tokenizer that parts text at spaces",
                    tokenizer_->file().string()));
  const Ids word = tokenizer_->encode("river"), sentence = tokenizer_->encode("river.");
  if (sentence.size() <= word.size() || !std::equal(word.begin(), word.end(), sentence.begin()))
    throw DataError(
        fmt::format("{}: the ids of \"river.\" do not begin with those of \"river\"; recall documents need "
                    "a tokenizer that parts words and full stops",
                    tokenizer_->file().string()));
  stop_.assign(sentence.begin() + static_cast<std::ptrdiff_t>(word.size()), sentence.end());
  single_ = {Part::stop, ".", -1};
  for (const std::string& candidate : words().code_words)
    if (after_space(candidate).size() == 1) single_ = {Part::filler, candidate, -1};
  if (of(single_).size() != 1)
    throw DataError(
        fmt::format("{}: neither a word nor the full stop is a single token; recall documents of exact "
                    "length need one",
                    tokenizer_->file().string()));
}

const Ids& Pieces::after_space(const std::string& text) {
  const auto found = known_.find(text);
  if (found != known_.end()) return found->second;
  if (known_.size() >= most_known) known_.clear();
  return known_.emplace(text, tokenizer_->encode(adds_space_ ? text : " " + text)).first->second;
}

}  // namespace replayeval::datasets::recall
