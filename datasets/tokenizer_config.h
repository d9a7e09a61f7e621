// What tokenizer_config.json and special_tokens_map.json add to a tokenizer.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/added_tokens.h"

namespace replayeval::datasets {

struct TokenizerConfig {
  std::optional<std::string> bos_token, eos_token;   // of tokenizer_config.json, else of special_tokens_map.json
  std::optional<bool> add_bos_token, add_eos_token;  // if either is there, the post-processor does not count
  std::vector<std::pair<std::int64_t, JsonNode>> added_tokens;  // added_tokens_decoder, by id
  std::vector<std::filesystem::path> files;                     // that were read

  std::vector<std::shared_ptr<const nlohmann::json>> documents;  // that added_tokens refers to
};

// Of the files that the folder has; it need have none. Throws DataError naming the file and place.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder);

}  // namespace replayeval::datasets
