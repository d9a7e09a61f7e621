#include "datasets/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "datasets/code_points.h"

namespace replayeval::datasets {
namespace {

bool touches_words(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 && is_word_character(code_point_before(text, begin).value)) ||
         (end < text.size() && is_word_character(code_point_at(text, end).value));
}

std::size_t space_start_before(std::string_view text, std::size_t end) {
  while (end > 0) {
    const CodePoint before = code_point_before(text, end);
    if (!is_white_space(before.value)) break;
    end -= before.size;
  }
  return end;
}

std::size_t space_end_behind(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const CodePoint behind = code_point_at(text, begin);
    if (!is_white_space(behind.value)) break;
    begin += behind.size;
  }
  return begin;
}

}  // namespace

AddedToken parse_added_token(const JsonNode& node) {
  return {.content = node.at("content").string(),
          .single_word = node.boolean_or("single_word", false),
          .lstrip = node.boolean_or("lstrip", false),
          .rstrip = node.boolean_or("rstrip", false),
          .normalized = node.boolean_or("normalized", true),
          .special = node.boolean_or("special", false)};
}

void TextFinder::add(std::string text, std::int32_t token) {
  first_bytes_[static_cast<unsigned char>(text.front())] = true;
  entries_.push_back({.text = std::move(text), .token = token});
}

void TextFinder::prepare() {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& left, const Entry& right) { return left.text < right.text; });
  const auto same = [](const Entry& left, const Entry& right) { return left.text == right.text; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
}

TextFinder::Found TextFinder::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!first_bytes_[static_cast<unsigned char>(text[begin])]) continue;
    // Entries that begin as the text does, one byte more at each step; an entry of just these bytes comes first.
    auto low = entries_.begin(), high = entries_.end();
    Found found;
    for (std::size_t depth = 0; low != high && begin + depth < text.size(); ++depth) {
      const auto byte = static_cast<unsigned char>(text[begin + depth]);
      const auto at_depth = [depth](const Entry& entry) {
        return depth < entry.text.size() ? static_cast<int>(static_cast<unsigned char>(entry.text[depth])) : -1;
      };
      low = std::partition_point(low, high, [&](const Entry& entry) { return at_depth(entry) < byte; });
      high = std::partition_point(low, high, [&](const Entry& entry) { return at_depth(entry) <= byte; });
      if (low != high && low->text.size() == depth + 1) {
        found = {.begin = begin, .end = begin + depth + 1, .token = low->token};
      }
    }
    if (found.token >= 0) return found;
  }
  return {};
}

void AddedTokens::add(const AddedToken& token, std::int64_t expected_id, const Bpe& vocabulary, const JsonNode& node) {
  if (token.content.empty()) return;
  std::int32_t id = id_of(token.content);
  if (id < 0) {
    const auto size = static_cast<std::int32_t>(vocabulary.token_count());
    id = vocabulary.id(token.content).value_or(std::max(size, largest_id_ + 1));
  }
  if (id != expected_id) {
    node.fail(fmt::format("token '{}' has id {}; expected {}, {}", token.content, expected_id, id,
                          vocabulary.id(token.content) ? "as in the vocabulary" : "the next free one"));
  }
  if (token.special) special_.insert(token.content);
  if (ids_.emplace(token.content, id).second) order_.push_back(token);
  by_id_[id] = {.token = token, .spelling = token.content};
  largest_id_ = std::max(largest_id_, id);
}

void AddedTokens::prepare(const Normalizer* normalizer, const std::string& place) {
  // Of two that normalize to the same text, a special one counts.
  std::stable_partition(order_.begin(), order_.end(),
                        [this](const AddedToken& token) { return special_.contains(token.content); });
  for (const AddedToken& token : order_) {
    const std::int32_t id = id_of(token.content);
    if (!token.normalized) {
      raw_.add(token.content, id);
      continue;
    }
    NormalizedText text{.text = token.content, .at_start = true};
    if (normalizer != nullptr) normalizer->apply(text);
    if (text.text.empty()) {
      throw DataError(
          fmt::format("{}: token '{}' has no text left when normalized; expected some", place, token.content));
    }
    by_id_.at(id).spelling = text.text;
    normalized_.add(std::move(text.text), id);
  }
  raw_.prepare();
  normalized_.prepare();
}

void AddedTokens::part(std::string_view text, const TextFinder& finder, std::vector<TextPiece>& parts) const {
  std::size_t covered = 0;
  TextFinder::Found found = finder.find(text, 0);
  for (; found.token >= 0; found = finder.find(text, found.end)) {
    const AddedToken& token = by_id_.at(found.token).token;
    if (token.single_word && touches_words(text, found.begin, found.end)) continue;
    const std::size_t begin = token.lstrip ? std::max(space_start_before(text, found.begin), covered) : found.begin;
    const std::size_t end = token.rstrip ? space_end_behind(text, found.end) : found.end;
    if (covered < begin) parts.push_back({.begin = covered, .end = begin, .token = -1, .at_start = covered == 0});
    parts.push_back({.begin = begin, .end = end, .token = found.token, .at_start = false});
    covered = end;
  }
  if (covered < text.size()) {
    parts.push_back({.begin = covered, .end = text.size(), .token = -1, .at_start = covered == 0});
  }
}

TextPieces AddedTokens::split(std::string_view text, const Normalizer* normalizer) const {
  TextPieces pieces;
  pieces.text.reserve(text.size());
  std::vector<TextPiece> raw, parts;
  part(text, raw_, raw);
  for (const TextPiece& piece : raw) {
    if (piece.token >= 0) {
      pieces.pieces.push_back(piece);
      continue;
    }
    NormalizedText section{.text = std::string(text.substr(piece.begin, piece.end - piece.begin)),
                           .at_start = piece.at_start};
    if (normalizer != nullptr) normalizer->apply(section);
    parts.clear();
    part(section.text, normalized_, parts);
    for (TextPiece& inner : parts) {
      inner.begin += pieces.text.size();
      inner.end += pieces.text.size();
      inner.at_start = inner.at_start && section.at_start;
      pieces.pieces.push_back(inner);
    }
    pieces.text += section.text;
  }
  return pieces;
}

const std::string* AddedTokens::spelling(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second.spelling;
}

bool AddedTokens::is_special(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && special_.contains(found->second.token.content);
}

std::int32_t AddedTokens::id_of(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace replayeval::datasets
