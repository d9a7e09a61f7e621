// Tokenizers behind one interface. Adding a format: one new file, and its place in load_tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/error.h"

namespace replayeval::datasets {

// What decoded text shows of special tokens (bos, eos and the like).
enum class SpecialTokens { keep, skip };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Token ids of well-formed UTF-8 text; adds no bos or eos. The spelling of a control token ("<s>") is that token, and
  // the text behind it is encoded as a text of its own: as transformers' tokenizers do, sentencepiece models too.
  // Throws DataError on text that is not UTF-8: "byte N: found
  // ..., expected UTF-8".
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // `ids` with the special tokens around them that the tokenizer's files ask for, as the model met texts in training.
  virtual std::vector<std::int32_t> add_special_tokens(std::vector<std::int32_t> ids) const = 0;
  // UTF-8 text of token ids; bytes that form no character become U+FFFD. sentencepiece shows no control tokens,
  // whatever `special` says. Throws DataError naming the place and the vocabulary size on an id outside the vocabulary.
  virtual std::string decode(std::span<const std::int32_t> ids, SpecialTokens special) const = 0;
  std::string decode(std::span<const std::int32_t> ids) const { return decode(ids, SpecialTokens::keep); }
  // The piece as the vocabulary spells it, e.g. "▁the". Throws as decode.
  virtual std::string piece(std::int32_t id) const = 0;

  virtual std::int64_t vocab_size() const = 0;
  virtual std::optional<std::int32_t> bos_id() const = 0;
  virtual std::optional<std::int32_t> eos_id() const = 0;
  virtual const std::string& kind() const = 0;            // "sentencepiece" or "bpe"
  virtual const std::filesystem::path& file() const = 0;  // what it was loaded from
  // Of that file; where other files beside it decide ids too, of the lines that sha256sum prints for all of them.
  virtual const std::string& sha256() const = 0;
};

// The tokenizer of a checkpoint folder: tokenizer.json, which is what transformers reads first and the only one of the
// two files with tokens added later; tokenizer.model (sentencepiece) where there is none, or where both are there and
// the JSON is not of a BPE model, so that only the other one can be read. Throws DataError naming the folder or file
// and what was expected: no tokenizer file, a damaged one, or one with a part that is not supported.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& checkpoint_folder);

}  // namespace replayeval::datasets
