// Documents as token ids, whatever they come from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "datasets/random_ids.h"
#include "datasets/text_source.h"
#include "datasets/tokenizer.h"

namespace replayeval::datasets {

struct TokenDocument {
  std::string source, id;
  std::vector<std::int32_t> tokens;
  std::int64_t bytes = 0;  // of its text; 0 where it has none
};

// A copy has a place in the documents of its own.
class TokenSource {
 public:
  TokenSource(TextSource text, std::shared_ptr<const Tokenizer> tokenizer);
  explicit TokenSource(RandomIds ids);

  std::optional<TokenDocument> next();  // the same documents in the same order every time
  void rewind();
  std::int64_t max_tokens() const;  // scored tokens taken from this source; 0: all
  nlohmann::json describe() const;  // for results.json

 private:
  std::variant<TextSource, RandomIds> documents_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // of text
  std::int64_t next_ = 0;                       // of random ids
};

}  // namespace replayeval::datasets
