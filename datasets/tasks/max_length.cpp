#include "datasets/tasks/max_length.h"

#include <optional>

#include "datasets/json_node.h"
#include "datasets/text_source.h"

namespace replayeval::tasks {
namespace {

using datasets::JsonNode;

constexpr std::int64_t default_length = 2048, longest = std::int64_t{1} << 40;
constexpr double tokenizer_infinity = 1e30;  // what transformers writes for "no limit", give or take a rounding

std::optional<std::int64_t> length_in_config(const JsonNode& file) {
  const auto text = file.find("text_config");
  const JsonNode& config = text ? *text : file;
  for (const char* key : {"n_positions", "max_position_embeddings", "n_ctx"})
    if (const auto value = config.find(key)) return value->integer(1, longest);
  return std::nullopt;
}

std::optional<std::int64_t> length_in_tokenizer(const JsonNode& file) {
  const auto value = file.find("model_max_length");
  if (!value) return std::nullopt;
  if (!value->value().is_number()) value->refuse("a number of tokens");
  const double length = value->value().get<double>();
  if (length >= 0.99 * tokenizer_infinity) return std::nullopt;
  if (!(length >= 1 && length <= static_cast<double>(longest))) value->refuse("a number of tokens");
  return static_cast<std::int64_t>(length);
}

template <typename Find>
std::optional<std::int64_t> length_in(const std::filesystem::path& file, Find find) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  const nlohmann::json document = datasets::parse_json(datasets::read_text_file(file), file.string());
  const JsonNode node(document, file.string());
  node.require_object();
  return find(node);
}

}  // namespace

std::int64_t max_length_of(const std::filesystem::path& checkpoint_folder) {
  if (const auto length = length_in(checkpoint_folder / "config.json", length_in_config)) return *length;
  return length_in(checkpoint_folder / "tokenizer_config.json", length_in_tokenizer).value_or(default_length);
}

}  // namespace replayeval::tasks
