#include "datasets/random_ids.h"

#include <fmt/format.h>

#include <random>
#include <span>
#include <utility>

#include "datasets/sha256.h"

namespace replayeval::datasets {

nlohmann::json to_json(const RandomIdsSpec& spec) {
  return {{"name", spec.name},
          {"random_ids", {{"documents", spec.documents}, {"tokens", spec.tokens}, {"seed", spec.seed}}}};
}

RandomIds::RandomIds(RandomIdsSpec spec, std::int64_t vocab_size) : spec_(std::move(spec)), vocab_size_(vocab_size) {
  if (spec_.documents < 1 || spec_.tokens < 1 || vocab_size < 1)
    throw DataError(
        fmt::format("random ids '{}': {} documents of {} tokens from a vocabulary of {}; expected 1 or more "
                    "of each",
                    spec_.name, spec_.documents, spec_.tokens, vocab_size));
}

// The remainder's bias is below 2^-40 for any vocabulary; std::uniform_int_distribution differs between platforms.
std::vector<std::int32_t> RandomIds::document(std::int64_t number) const {
  std::seed_seq seeds{spec_.seed & 0xffffffffU, spec_.seed >> 32, static_cast<std::uint64_t>(number)};
  std::mt19937_64 random(seeds);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(spec_.tokens));
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocab_size_));
  return ids;
}

std::string RandomIds::sha256() const {
  Sha256 digest;
  for (std::int64_t number = 0; number < spec_.documents; ++number) {
    const std::vector<std::int32_t> ids = document(number);
    digest.update(std::as_bytes(std::span(ids)));
  }
  return digest.hex();
}

nlohmann::json RandomIds::describe() const {
  nlohmann::json description = to_json(spec_);
  description["vocab_size"] = vocab_size_;
  description["documents"] = spec_.documents;
  description["sha256"] = sha256();
  return description;
}

}  // namespace replayeval::datasets
