// Documents of random token ids: for runs on random weights, where no text means anything and no tokenizer is at hand.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/error.h"

namespace replayeval::datasets {

struct RandomIdsSpec {
  std::string name = "random-ids";  // as reports name it
  std::int64_t documents = 1;
  std::int64_t tokens = 1;  // of each document
  std::uint64_t seed = 0;
};

nlohmann::json to_json(const RandomIdsSpec& spec);

// Ids uniform over a vocabulary. A document depends on seed, its number and the vocabulary's size alone, on every
// platform.
class RandomIds {
 public:
  // Throws DataError on sizes below 1.
  RandomIds(RandomIdsSpec spec, std::int64_t vocab_size);

  const RandomIdsSpec& spec() const { return spec_; }
  std::vector<std::int32_t> document(std::int64_t number) const;
  nlohmann::json describe() const;  // {name, random_ids {documents, tokens, seed}, vocab_size, documents, sha256}
  // Of all ids as little-endian 32-bit integers, document after document.
  std::string sha256() const;

 private:
  RandomIdsSpec spec_;
  std::int64_t vocab_size_ = 0;
};

}  // namespace replayeval::datasets
