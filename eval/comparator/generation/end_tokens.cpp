#include "eval/comparator/generation/end_tokens.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "eval/checkpoint/checkpoint.h"
#include "eval/checkpoint/json_text.h"

namespace replayeval {
namespace {

using nlohmann::json;

// Whether the object says any.
bool add_ids(const json& object, const std::filesystem::path& file, std::int64_t vocab_size,
             std::set<std::int32_t>& ids) {
  const auto said = object.find("eos_token_id");
  if (said == object.end() || said->is_null()) return false;
  const auto add = [&](const json& id) {
    if (!id.is_number_integer() || id < 0 || id >= vocab_size)
      throw CheckpointError(fmt::format("{}: eos_token_id: found {}, expected ids from 0 to {}", file.string(),
                                        show(*said), vocab_size - 1));
    ids.insert(id.get<std::int32_t>());
  };
  if (!said->is_array()) {
    add(*said);
    return true;
  }
  for (const json& id : *said) add(id);
  return !said->empty();
}

}  // namespace

std::set<std::int32_t> end_tokens_of(const std::filesystem::path& checkpoint_folder,
                                     const datasets::Tokenizer* tokenizer, std::int64_t vocab_size) {
  std::set<std::int32_t> ids;
  if (tokenizer != nullptr && tokenizer->eos_id()) ids.insert(*tokenizer->eos_id());
  const std::filesystem::path generation = checkpoint_folder / "generation_config.json",
                              config = checkpoint_folder / "config.json";
  if (std::filesystem::exists(generation)) {
    const json said = read_json_file(generation);
    if (!said.is_object())
      throw CheckpointError(fmt::format("{}: found {}, expected an object", generation.string(), show(said)));
    if (add_ids(said, generation, vocab_size, ids)) return ids;
  }
  const json said = read_json_file(config);
  if (!add_ids(said, config, vocab_size, ids) && said.contains("text_config") && said["text_config"].is_object())
    add_ids(said["text_config"], config, vocab_size, ids);
  return ids;
}

}  // namespace replayeval
