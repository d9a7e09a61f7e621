#include "eval/model/layer_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace replayeval {

std::vector<LayerKind> read_layer_names(ConfigReader& reader, const std::string& key,
                                        const std::vector<LayerKind>& allowed) {
  const auto contains = [&](LayerKind kind) {
    return std::find(allowed.begin(), allowed.end(), kind) != allowed.end();
  };
  LayerKind linear = LayerKind::mamba2;  // what linear attention is in this architecture
  for (const LayerKind kind : {LayerKind::gated_delta, LayerKind::kda})
    if (contains(kind)) linear = kind;
  const std::map<std::string, LayerKind> kinds = {{"linear_attention", linear},
                                                  {"mamba", LayerKind::mamba2},
                                                  {"mamba2", LayerKind::mamba2},
                                                  {"full_attention", LayerKind::attention},
                                                  {"attention", LayerKind::attention},
                                                  {"mlp", LayerKind::mlp},
                                                  {"moe", LayerKind::moe}};
  std::vector<LayerKind> layers;
  for (const std::string& name : reader.words(key)) {
    const auto found = kinds.find(name);
    if (found == kinds.end() || !contains(found->second)) {
      std::vector<std::string> words;
      for (const auto& [word, kind] : kinds)
        if (contains(kind)) words.push_back(word);
      reader.fail(key, fmt::format("only {}; found \"{}\" at layer {}", fmt::join(words, ", "), name, layers.size()));
    }
    layers.push_back(found->second);
  }
  return layers;
}

std::vector<LayerKind> read_layer_count(ConfigReader& reader, LayerKind kind, std::optional<std::int64_t> otherwise) {
  constexpr std::int64_t most = 10000;  // a bad file shall not ask for all memory
  const std::string key = "num_hidden_layers";
  const std::int64_t count = otherwise ? reader.positive(key, *otherwise) : reader.positive(key);
  if (count > most) reader.fail("num_hidden_layers", "at most " + std::to_string(most));
  return std::vector<LayerKind>(static_cast<std::size_t>(count), kind);
}

void check_layer_count(ConfigReader& reader, const std::vector<LayerKind>& layers, const std::string& key) {
  const auto count = static_cast<std::int64_t>(layers.size());
  if (reader.positive("num_hidden_layers", count) != count)
    reader.fail("num_hidden_layers", fmt::format("as many as {} has layers ({})", key, count));
}

std::vector<LayerKind> read_mixer_list(ConfigReader& reader, LayerKind otherwise) {
  std::vector<LayerKind> layers;
  std::string listed_in;
  for (const std::string key : {"layer_types", "layers_block_type"}) {
    if (!reader.has(key)) continue;
    const std::vector<LayerKind> found = read_layer_names(reader, key, {LayerKind::mamba2, LayerKind::attention});
    if (!layers.empty() && found != layers) reader.fail(key, "the same layers as layer_types gives");
    layers = found;
    listed_in = key;
  }
  if (layers.empty()) return read_layer_count(reader, otherwise);
  check_layer_count(reader, layers, listed_in);
  return layers;
}

}  // namespace replayeval
