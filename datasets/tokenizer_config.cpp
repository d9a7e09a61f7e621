#include "datasets/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "datasets/text_source.h"

namespace replayeval::datasets {
namespace {

// "<s>" or {"content": "<s>", ...}.
std::optional<std::string> token_text(const JsonNode& file, const std::string& key) {
  const auto node = file.find(key);
  if (!node) return std::nullopt;
  return node->value().is_object() ? node->at("content").string() : node->string();
}

std::optional<bool> flag(const JsonNode& file, const std::string& key) {
  const auto node = file.find(key);
  return node ? std::optional(node->boolean()) : std::nullopt;
}

void read_added_tokens(const JsonNode& file, TokenizerConfig& config) {
  const auto decoder = file.find("added_tokens_decoder");
  if (!decoder) return;
  decoder->require_object();
  for (const auto& [key, token] : decoder->value().items()) {
    const JsonNode node(token, decoder->place() + "." + key);
    std::int32_t id = -1;
    const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || stop != key.data() + key.size() || id < 0) node.fail("expected a token id as the key");
    config.added_tokens.emplace_back(id, node);
  }
  std::sort(config.added_tokens.begin(), config.added_tokens.end(),
            [](const auto& left, const auto& right) { return left.first < right.first; });
}

}  // namespace

TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder) {
  TokenizerConfig config;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path file = folder / name;
    if (!std::filesystem::exists(file)) continue;
    config.files.push_back(file);
    config.documents.push_back(std::make_shared<nlohmann::json>(parse_json(read_text_file(file), file.string())));
    const JsonNode node(*config.documents.back(), file.string());
    node.require_object();
    if (!config.bos_token) config.bos_token = token_text(node, "bos_token");
    if (!config.eos_token) config.eos_token = token_text(node, "eos_token");
    if (config.documents.size() > 1 || std::string_view(name) != "tokenizer_config.json") continue;
    config.add_bos_token = flag(node, "add_bos_token");
    config.add_eos_token = flag(node, "add_eos_token");
    read_added_tokens(node, config);
  }
  return config;
}

}  // namespace replayeval::datasets
