// Byte pair encoding (Sennrich et al. 2016) over a fixed vocabulary: the "model" of a tokenizer.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/json_node.h"

namespace replayeval::datasets {

// Merges are applied in order of rank, the leftmost first among equals. A character outside the vocabulary becomes its
// bytes "<0xHH>" (byte_fallback), else unk_token, else nothing. Safe to use from several threads.
class Bpe {
 public:
  // {"type": "BPE", "vocab", "merges", ...}. Throws DataError naming the place: a member that is missing or wrong, a
  // merge of what is not in the vocabulary, an id taken twice, dropout (which is random).
  explicit Bpe(const JsonNode& model);
  ~Bpe();
  Bpe(Bpe&&) noexcept;
  Bpe& operator=(Bpe&&) noexcept;

  std::optional<std::int32_t> id(std::string_view token) const;
  const std::string* token(std::int32_t id) const;  // nullptr if the vocabulary lacks the id
  std::int64_t token_count() const;
  std::int32_t largest_id() const;  // -1 for an empty vocabulary

  // Encodes words one after the other and remembers short ones. For one thread at a time; holds space from the model's
  // store until it goes.
  class Encoder {
   public:
    explicit Encoder(const Bpe& bpe);
    ~Encoder();
    Encoder(const Encoder&) = delete;
    Encoder& operator=(const Encoder&) = delete;
    // Appends the ids of `word`, UTF-8 and not empty. Throws DataError when an unk_token is needed that the vocabulary
    // lacks. Time n log n, memory n in the word's length.
    void append(std::string_view word, std::vector<std::int32_t>& ids);

   private:
    const Bpe& bpe_;
    struct Space;
    friend class Bpe;
    std::unique_ptr<Space> space_;
  };

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace replayeval::datasets
