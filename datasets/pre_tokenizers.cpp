#include "datasets/pre_tokenizers.h"

#include <string>
#include <utility>
#include <vector>

#include "datasets/byte_level.h"
#include "datasets/code_points.h"
#include "datasets/nested_parts.h"
#include "datasets/oniguruma_pattern.h"
#include "datasets/pattern_node.h"
#include "datasets/regex.h"

namespace replayeval::datasets {
namespace {

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const JsonNode& node) {
  return static_cast<Behavior>(
      node.choice({"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}));
}

// Joins a match to the text before it (or, read backwards, behind it), but never to another match.
void merge_matches(std::vector<Match>& parts, bool backwards) {
  std::vector<Match> merged;
  bool after_match = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Match& part = backwards ? parts[parts.size() - 1 - i] : parts[i];
    if (part.is_match && !after_match && !merged.empty()) {
      (backwards ? merged.back().begin : merged.back().end) = backwards ? part.begin : part.end;
    } else {
      merged.push_back(part);
    }
    after_match = part.is_match;
  }
  if (backwards) merged = {merged.rbegin(), merged.rend()};
  parts = std::move(merged);
}

void join_alike(std::vector<Match>& parts) {
  std::vector<Match> joined;
  for (const Match& part : parts) {
    if (!joined.empty() && joined.back().is_match == part.is_match) {
      joined.back().end = part.end;
    } else {
      joined.push_back(part);
    }
  }
  parts = std::move(joined);
}

// The parts that remain of matches and the text between them.
void arrange(std::vector<Match>& parts, Behavior behavior) {
  switch (behavior) {
    case Behavior::removed:
      std::erase_if(parts, [](const Match& part) { return part.is_match; });
      return;
    case Behavior::isolated:
      return;
    case Behavior::merged_with_previous:
      return merge_matches(parts, false);
    case Behavior::merged_with_next:
      return merge_matches(parts, true);
    case Behavior::contiguous:
      return join_alike(parts);
  }
}

// Parts every piece that is no token: `find(text, parts)` appends Matches that cover the text.
template <typename Find>
void part_pieces(TextPieces& pieces, Behavior behavior, Find find) {
  std::vector<TextPiece> parted;
  parted.reserve(pieces.pieces.size());
  std::vector<Match> parts;
  for (const TextPiece& piece : pieces.pieces) {
    if (piece.token >= 0) {
      parted.push_back(piece);
      continue;
    }
    parts.clear();
    find(pieces.of(piece), parts);
    arrange(parts, behavior);
    for (const Match& part : parts) {
      if (part.begin == part.end) continue;
      parted.push_back({.begin = piece.begin + part.begin,
                        .end = piece.begin + part.end,
                        .token = -1,
                        .at_start = piece.at_start && part.begin == 0});
    }
  }
  pieces.pieces = std::move(parted);
}

// Every character of the class is a match by itself.
template <typename InClass>
void find_characters(std::string_view text, InClass in_class, std::vector<Match>& parts) {
  std::size_t between = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint found = code_point_at(text, at);
    if (in_class(found.value)) {
      if (between < at) parts.push_back({.begin = between, .end = at, .is_match = false});
      parts.push_back({.begin = at, .end = at + found.size, .is_match = true});
      between = at + found.size;
    }
    at += found.size;
  }
  if (between < text.size()) parts.push_back({.begin = between, .end = text.size(), .is_match = false});
}

// Writes each piece anew: `write(old text, is at the start, new text)`.
template <typename Write>
void rewrite_pieces(TextPieces& pieces, Write write) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.text.size() / 4);
  for (TextPiece& piece : pieces.pieces) {
    if (piece.token >= 0) continue;
    const std::size_t begin = text.size();
    write(pieces.of(piece), piece.at_start, text);
    piece.begin = begin;
    piece.end = text.size();
  }
  pieces.text = std::move(text);
}

class Split final : public PreTokenizer {
 public:
  Split(Regex pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(TextPieces& pieces) const override {
    part_pieces(pieces, behavior_, [this](std::string_view text, std::vector<Match>& parts) {
      pattern_.find_all(text, parts);
      if (invert_) {
        for (Match& part : parts) part.is_match = !part.is_match;
      }
    });
  }

 private:
  Regex pattern_;
  Behavior behavior_;
  bool invert_;
};

// Radford et al. 2019: words with the space before them, in the alphabet of byte_level.h.
class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex) : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  void apply(TextPieces& pieces) const override {
    if (add_prefix_space_) {
      rewrite_pieces(pieces, [](std::string_view old, bool, std::string& text) {
        if (!old.starts_with(' ')) text += ' ';
        text += old;
      });
    }
    if (use_regex_) {
      part_pieces(pieces, Behavior::isolated,
                  [](std::string_view text, std::vector<Match>& parts) { words().find_all(text, parts); });
    }
    rewrite_pieces(pieces, [](std::string_view old, bool, std::string& text) { append_byte_characters(old, text); });
  }

 private:
  static const Regex& words() {
    static const Regex pattern(
        pcre2_from_oniguruma(R"('(?:[stmd]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "ByteLevel"),
        "ByteLevel");
    return pattern;
  }

  bool add_prefix_space_, use_regex_;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool individual) : behavior_(individual ? Behavior::isolated : Behavior::contiguous) {}
  void apply(TextPieces& pieces) const override {
    part_pieces(pieces, behavior_,
                [](std::string_view text, std::vector<Match>& parts) { find_characters(text, is_numeric, parts); });
  }

 private:
  Behavior behavior_;
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(Behavior behavior) : behavior_(behavior) {}
  void apply(TextPieces& pieces) const override {
    part_pieces(pieces, behavior_,
                [](std::string_view text, std::vector<Match>& parts) { find_characters(text, is_punctuation, parts); });
  }

 private:
  Behavior behavior_;
};

class WhitespaceSplit final : public PreTokenizer {
 public:
  void apply(TextPieces& pieces) const override {
    part_pieces(pieces, Behavior::removed,
                [](std::string_view text, std::vector<Match>& parts) { find_characters(text, is_white_space, parts); });
  }
};

// sentencepiece's way with spaces: each becomes `mark`, and one may be put before the text.
class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend { always, never, first };
  Metaspace(std::string mark, Prepend prepend, bool split)
      : mark_(std::move(mark)), mark_pattern_(Regex::literal(mark_, "Metaspace")), prepend_(prepend), split_(split) {}

  void apply(TextPieces& pieces) const override {
    rewrite_pieces(pieces, [this](std::string_view old, bool at_start, std::string& text) {
      const bool wanted = prepend_ == Prepend::always || (prepend_ == Prepend::first && at_start);
      if (wanted && !old.starts_with(' ') && !old.starts_with(mark_)) text += mark_;
      for (const char byte : old) {
        if (byte == ' ') {
          text += mark_;
        } else {
          text += byte;
        }
      }
    });
    if (split_) {
      part_pieces(pieces, Behavior::merged_with_next,
                  [this](std::string_view text, std::vector<Match>& parts) { mark_pattern_.find_all(text, parts); });
    }
  }

 private:
  std::string mark_;
  Regex mark_pattern_;
  Prepend prepend_;
  bool split_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) : parts_(std::move(parts)) {}
  void apply(TextPieces& pieces) const override {
    for (const auto& part : parts_) part->apply(pieces);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

std::unique_ptr<PreTokenizer> make_metaspace(const JsonNode& node) {
  const JsonNode replacement = node.at("replacement");
  const std::string& mark = replacement.string();
  if (mark.empty() || code_point_at(mark, 0).size != mark.size()) replacement.refuse("one character");
  Metaspace::Prepend prepend = Metaspace::Prepend::always;
  const auto scheme = node.find("prepend_scheme");
  if (scheme) prepend = static_cast<Metaspace::Prepend>(scheme->choice({"always", "never", "first"}));
  if (!node.boolean_or("add_prefix_space", true)) {  // how files from before prepend_scheme say it
    if (scheme && prepend != Metaspace::Prepend::never) scheme->refuse("\"never\", as add_prefix_space is false");
    prepend = Metaspace::Prepend::never;
  }
  return std::make_unique<Metaspace>(mark, prepend, node.boolean_or("split", true));
}

std::unique_ptr<PreTokenizer> make_punctuation(const JsonNode& node) {
  const auto behavior = node.find("behavior");
  return std::make_unique<Punctuation>(behavior ? behavior_of(*behavior) : Behavior::isolated);
}

std::unique_ptr<PreTokenizer> make_whitespace() {
  // Words and what is between them and white space; the space itself goes.
  static const Regex pattern(pcre2_from_oniguruma(R"([\w\u200C\u200D]+|[^\w\s\u200C\u200D]+)", "Whitespace"),
                             "Whitespace");
  return std::make_unique<Split>(pattern, Behavior::removed, true);
}

std::unique_ptr<PreTokenizer> make(const JsonNode& node, int depth) {
  switch (node.at("type").choice(
      {"ByteLevel", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "Metaspace", "Sequence"})) {
    case 0:
      return std::make_unique<ByteLevel>(node.boolean_or("add_prefix_space", true), node.boolean_or("use_regex", true));
    case 1:
      return std::make_unique<Split>(regex_of(node.at("pattern")), behavior_of(node.at("behavior")),
                                     node.boolean_or("invert", false));
    case 2:
      return std::make_unique<Digits>(node.boolean_or("individual_digits", false));
    case 3:
      return make_punctuation(node);
    case 4:
      return make_whitespace();
    case 5:
      return std::make_unique<WhitespaceSplit>();
    case 6:
      return make_metaspace(node);
    default:
      return std::make_unique<Sequence>(make_parts<PreTokenizer>(node, "pretokenizers", depth, make));
  }
}

}  // namespace

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonNode& node) { return make(node, 0); }

}  // namespace replayeval::datasets
