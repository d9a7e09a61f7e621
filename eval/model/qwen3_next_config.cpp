#include "eval/model/qwen3_next_config.h"

#include <cmath>
#include <string>
#include <vector>

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"

namespace replayeval {
namespace {

// Experts in every decoder_sparse_step-th layer that mlp_only_layers does not name, if there are experts at all.
std::vector<bool> read_mixtures(ConfigReader& reader, std::size_t layers) {
  const bool dense = reader.says("num_experts", 0);
  const auto step = static_cast<std::size_t>(reader.positive("decoder_sparse_step", 1));
  std::vector<bool> mixtures(layers, false);
  for (std::size_t i = step - 1; i < layers && !dense; i += step) mixtures[i] = true;
  const std::string key = "mlp_only_layers";
  for (const double index : reader.numbers(key, {})) {
    if (index < 0.0 || index >= static_cast<double>(layers) || index != std::floor(index))
      reader.fail(key, "integers from 0 to num_hidden_layers - 1 (" + std::to_string(layers - 1) + ")");
    mixtures[static_cast<std::size_t>(index)] = false;
  }
  return mixtures;
}

}  // namespace

QwenHybridConfig read_qwen3_next_config(const Checkpoint& checkpoint) {
  constexpr QwenHybridDefaults defaults = {151936, 2048, 48, 2, 512, 10};
  ConfigReader reader(checkpoint);
  QwenHybridConfig config;
  config.architecture.model_type = reader.word("model_type", "");
  read_qwen_hybrid(reader, defaults, config);
  config.mixtures = read_mixtures(reader, config.architecture.layers.size());
  read_qwen_feed_forward(reader, defaults, 5632, config);
  config.renormalise = reader.flag("norm_topk_prob", true);
  finish_keys(reader, config.architecture);
  return config;
}

}  // namespace replayeval
