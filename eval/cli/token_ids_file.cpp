#include "eval/cli/token_ids_file.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "eval/checkpoint/json_text.h"

namespace replayeval {

std::vector<std::int64_t> read_token_ids(const std::filesystem::path& file, std::int64_t vocab_size) {
  const nlohmann::json list = read_json_file(file);
  if (!list.is_array())
    throw std::runtime_error(file.string() + ": " + show(list) + "; expected a JSON list of token ids");
  if (list.empty()) throw std::runtime_error(file.string() + ": an empty list; expected at least one token id");
  std::vector<std::int64_t> ids;
  for (const nlohmann::json& item : list) {
    const bool inside = item.is_number_integer() && item >= 0 && item < vocab_size;
    if (!inside)
      throw std::runtime_error(file.string() + ": token " + std::to_string(ids.size()) + " is " + show(item) +
                               "; expected an integer from 0 to " + std::to_string(vocab_size - 1) +
                               " (vocabulary of " + std::to_string(vocab_size) + ")");
    ids.push_back(item.get<std::int64_t>());
  }
  return ids;
}

}  // namespace replayeval
