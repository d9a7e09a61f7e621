#include "eval/model/zamba2_config.h"

#include <cmath>
#include <map>

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"
#include "eval/model/layer_list.h"

namespace replayeval {
namespace {

// Beside the usual ones: sizes that follow from others, and switches that the code does not look at (the convolution
// always has a bias, the shared MLPs always have adapters).
const std::vector<std::string>& ignored_keys() {
  static const std::vector<std::string> keys = {"kv_channels",   "num_query_groups",       "use_mem_eff_path",
                                                "use_conv_bias", "use_shared_mlp_adapter", "chunk_size",
                                                "time_step_max", "time_step_floor",        "use_mamba_kernels"};
  return keys;
}

// The 54 layers of a configuration that does not list them.
std::vector<LayerKind> default_layers() {
  std::vector<LayerKind> layers(1, LayerKind::mamba2);
  const auto append = [&layers](int mixers) {
    layers.insert(layers.end(), static_cast<std::size_t>(mixers), LayerKind::mamba2);
  };
  for (int group = 0; group < 7; ++group) {
    append(5);
    layers.push_back(LayerKind::mamba2_attention);
  }
  for (const int mixers : {4, 3}) {
    append(mixers);
    layers.push_back(LayerKind::mamba2_attention);
  }
  append(2);
  return layers;
}

std::vector<LayerKind> read_layers(ConfigReader& reader) {
  static const std::map<std::string, LayerKind> kinds = {
      {"mamba", LayerKind::mamba2}, {"linear_attention", LayerKind::mamba2}, {"hybrid", LayerKind::mamba2_attention}};
  const std::string key = reader.has("layers_block_type") ? "layers_block_type" : "layer_types";
  std::vector<LayerKind> layers;
  if (!reader.has(key)) {
    layers = default_layers();
    check_layer_count(reader, layers, "the default of layers_block_type");
    return layers;
  }
  for (const std::string& name : reader.words(key)) {
    const auto found = kinds.find(name);
    if (found == kinds.end())
      reader.fail(key, "only mamba (or linear_attention) and hybrid; found \"" + name + "\" at layer " +
                           std::to_string(layers.size()));
    layers.push_back(found->second);
  }
  if (layers.empty()) reader.fail(key, "at least one layer");
  check_layer_count(reader, layers, key);
  return layers;
}

// Sizes that are saved although they follow from others must do so here, too.
void check_derived(ConfigReader& reader, const Architecture& architecture) {
  nlohmann::json hybrid = nlohmann::json::array();
  for (std::size_t i = 0; i < architecture.layers.size(); ++i)
    if (architecture.layers[i] == LayerKind::mamba2_attention) hybrid.push_back(i);
  reader.require("hybrid_layer_ids", {hybrid}, "the hybrid layers of layers_block_type");
  reader.require("attention_hidden_size", {2 * architecture.hidden_size}, "twice hidden_size");
  for (const char* key : {"attention_head_dim", "head_dim"})
    reader.require(key, {architecture.head_dim}, "2 * hidden_size / num_attention_heads");
  reader.require("mamba_headdim", {architecture.mamba.head_dim}, "mamba_expand * hidden_size / n_mamba_heads");
}

void read_mixer(ConfigReader& reader, Zamba2Config& config) {
  Architecture& architecture = config.architecture;
  mamba2::Shape& shape = architecture.mamba;
  shape.num_heads = reader.positive("n_mamba_heads", 8);
  shape.num_groups = reader.positive("mamba_ngroups", 1);
  shape.state_size = reader.positive("mamba_d_state", 64);
  architecture.conv_kernel = reader.positive("mamba_d_conv", 4);
  const std::int64_t inner = reader.positive("mamba_expand", 2) * architecture.hidden_size;
  if (inner % shape.num_heads != 0)
    reader.fail("n_mamba_heads", "a divisor of mamba_expand * hidden_size (" + std::to_string(inner) + ")");
  shape.head_dim = inner / shape.num_heads;
  check_mamba_sizes(reader, {"n_mamba_heads", "mamba_ngroups", "mamba_headdim", "mamba_d_state", "mamba_d_conv"}, shape,
                    architecture.conv_kernel);
  architecture.norm_group_size = norm_of_each_group(shape);
  config.time_step_limit = read_time_step_limit(reader, "time_step_limit");
  config.time_step_min = read_finite(reader, "time_step_min", 0.001);
  if (config.time_step_min < 0.0) reader.fail("time_step_min", "a finite number of at least 0");
}

void read_rotary(ConfigReader& reader, bool use_long_context, Zamba2Config& config) {
  const Architecture& architecture = config.architecture;
  if (!reader.flag("use_mem_rope", false)) {
    reader.ignore(
        {"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor", "original_max_position_embeddings"});
    return;
  }
  RotaryRules rules;
  rules.head_dim = architecture.head_dim;
  rules.max_positions = architecture.max_positions;
  rules.whole_heads = true;
  config.rotary = replayeval::read_rotary(reader, rules);
  if (!use_long_context) return;
  if (architecture.head_dim < 4) reader.fail("use_long_context", "false with heads of fewer than 4 elements");
  // As the published configuration code has it; transformers lost it between 4.57 and 5.
  const auto dim = static_cast<double>(architecture.head_dim);
  config.rotary->theta *= std::pow(8.0, dim / (dim - 2.0));
}

void read_shared_blocks(ConfigReader& reader, Zamba2Config& config) {
  Architecture& architecture = config.architecture;
  architecture.num_heads = reader.positive("num_attention_heads", 32);
  architecture.num_kv_heads = reader.positive("num_key_value_heads", architecture.num_heads);
  const std::int64_t width = 2 * architecture.hidden_size;
  if (width % architecture.num_heads != 0)
    reader.fail("num_attention_heads", "a divisor of 2 * hidden_size (" + std::to_string(width) + ")");
  architecture.head_dim = width / architecture.num_heads;
  if (architecture.num_heads % architecture.num_kv_heads != 0)
    reader.fail("num_key_value_heads",
                "a divisor of num_attention_heads (" + std::to_string(architecture.num_heads) + ")");
  config.num_mem_blocks = reader.positive("num_mem_blocks", 1);
  config.adapter_rank = reader.positive("adapter_rank", 128);
  config.use_shared_attention_adapter = reader.flag("use_shared_attention_adapter", false);
  if (config.use_shared_attention_adapter && architecture.num_kv_heads != architecture.num_heads)
    reader.fail("num_key_value_heads", "num_attention_heads: the adapters' outputs have the width of all heads");
  architecture.intermediate_size = reader.positive("intermediate_size", 4 * architecture.hidden_size);
  config.hidden_act = read_activation(reader, "hidden_act", "gelu");
}

}  // namespace

// Sizes that are missing are those of the published code's own defaults.
Zamba2Config read_zamba2_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  Zamba2Config config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.vocab_size = reader.positive("vocab_size", 32000);
  architecture.hidden_size = reader.positive("hidden_size", 2560);
  const bool use_long_context = reader.flag("use_long_context", false);
  architecture.max_positions = reader.positive("max_position_embeddings", 4096);
  if (use_long_context) architecture.max_positions = 16384;
  architecture.layers = read_layers(reader);
  read_mixer(reader, config);
  read_shared_blocks(reader, config);
  read_rotary(reader, use_long_context, config);
  config.add_bias_linear = reader.flag("add_bias_linear", false);
  config.norm_eps = read_norm_eps(reader, "rms_norm_eps", 1e-5);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", true);
  check_derived(reader, architecture);
  ignore_common_keys(reader);
  reader.ignore(ignored_keys());
  finish_keys(reader, architecture);
  return config;
}

}  // namespace replayeval
