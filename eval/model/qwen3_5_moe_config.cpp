#include "eval/model/qwen3_5_moe_config.h"

#include "eval/model/config_reader.h"
#include "eval/model/qwen3_5_config.h"

namespace replayeval {
namespace {

void read_mixture_model(ConfigReader& reader, QwenHybridConfig& config) {
  constexpr QwenHybridDefaults defaults = {248320, 2048, 40, 2, 256, 8};
  read_qwen_hybrid(reader, defaults, config);
  config.mixtures.assign(config.architecture.layers.size(), true);
  read_qwen_feed_forward(reader, defaults, 0, config);
  reader.require("norm_topk_prob", {true}, "the published code always renormalises");
  reader.require("decoder_sparse_step", {1}, "the published code has experts in every layer");
  reader.require("mlp_only_layers", {nlohmann::json::array()}, "the published code has experts in every layer");
}

}  // namespace

QwenHybridConfig read_qwen3_5_moe_config(const Checkpoint& checkpoint) {
  return read_wrapped_qwen(checkpoint, &read_mixture_model);
}

}  // namespace replayeval
