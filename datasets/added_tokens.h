// The "added_tokens" of a tokenizer.json: texts that are a token wherever they stand, before anything parts the text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "datasets/bpe.h"
#include "datasets/json_node.h"
#include "datasets/normalizers.h"
#include "datasets/text_pieces.h"

namespace replayeval::datasets {

struct AddedToken {
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
  bool normalized = false;   // looked for, normalized itself, in normalized text
  bool special = false;      // marks structure: what SpecialTokens::skip leaves out of decoded text

  bool operator==(const AddedToken&) const = default;
};

// {"content", "single_word", "lstrip", "rstrip", "normalized", "special"}. Throws DataError naming the place.
AddedToken parse_added_token(const JsonNode& node);

// Which of several texts stands first in a text, the longest where several begin at the same place.
class TextFinder {
 public:
  struct Found {
    std::size_t begin = 0, end = 0;
    std::int32_t token = -1;  // < 0: none
  };
  void add(std::string text, std::int32_t token);  // not empty; of equal texts the first one added counts
  void prepare();                                  // after the last add()
  Found find(std::string_view text, std::size_t from) const;

 private:
  struct Entry {
    std::string text;
    std::int32_t token = -1;
  };
  std::vector<Entry> entries_;           // by text, bytewise
  std::array<bool, 256> first_bytes_{};  // of some entry
};

class AddedTokens {
 public:
  // As the tokenizers library adds them: a token of the vocabulary keeps its id, others take the ids from the
  // vocabulary's size on; what is added again takes the new flags. `expected_id` is what the file says. Throws
  // DataError naming the place if the two differ.
  void add(const AddedToken& token, std::int64_t expected_id, const Bpe& vocabulary, const JsonNode& node);
  // After the last add(). Throws DataError if a token has no text left when normalized.
  void prepare(const Normalizer* normalizer, const std::string& place);

  // Parts `text` at the tokens that are looked for as they are, normalizes what is between (`normalizer` may be null),
  // and parts that at the others.
  TextPieces split(std::string_view text, const Normalizer* normalizer) const;

  // How decoded text shows the token: normalized, if it is looked for so. nullptr: no added token.
  const std::string* spelling(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  std::int32_t id_of(std::string_view content) const;  // -1: no added token
  std::int32_t largest_id() const { return largest_id_; }

 private:
  // Appends parts that cover `text`: tokens and what is between them.
  void part(std::string_view text, const TextFinder& finder, std::vector<TextPiece>& parts) const;

  struct Known {
    AddedToken token;
    std::string spelling;
  };

  std::vector<AddedToken> order_;  // as added, the first of each content
  std::unordered_map<std::int32_t, Known> by_id_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_set<std::string> special_;
  std::int32_t largest_id_ = -1;
  TextFinder raw_, normalized_;
};

}  // namespace replayeval::datasets
