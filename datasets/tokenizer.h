// Tokenizers behind one interface. Adding a format: one new file, and one line in the registry of tokenizer.cpp.
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

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Token ids of well-formed UTF-8 text; adds no bos or eos. Throws DataError on text that is not UTF-8.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // Text of token ids. Throws DataError naming the place and the vocabulary size on an id outside the vocabulary.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  // The piece as the vocabulary spells it, e.g. "▁the". Throws as decode.
  virtual std::string piece(std::int32_t id) const = 0;

  virtual std::int64_t vocab_size() const = 0;
  virtual std::optional<std::int32_t> bos_id() const = 0;
  virtual std::optional<std::int32_t> eos_id() const = 0;
  virtual const std::string& kind() const = 0;            // e.g. "sentencepiece"
  virtual const std::filesystem::path& file() const = 0;  // what it was loaded from
  virtual const std::string& sha256() const = 0;          // of that file
};

// The tokenizer of a checkpoint folder, by the file present: tokenizer.model (sentencepiece). Throws DataError naming
// the folder or file and what was expected: no tokenizer file, a damaged one, or a format that is not supported yet
// (tokenizer.json).
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& checkpoint_folder);

}  // namespace replayeval::datasets
