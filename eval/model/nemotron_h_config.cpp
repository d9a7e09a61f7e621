#include "eval/model/nemotron_h_config.h"

#include <limits>
#include <map>
#include <optional>

#include "eval/model/config_reader.h"

namespace replayeval {
namespace {

// Keys that change nothing here: initialisation, training, generation, caching and bookkeeping; names of the expert
// layers and of multi-token prediction, which a pattern without E does not use; and keys that are there in published
// folders but that transformers' code for this type does not look at (attention_bias, sliding_window, rope_theta, ...).
const std::vector<std::string>& ignored_keys() {
  static const std::vector<std::string> keys = {"architectures",
                                                "auto_map",
                                                "transformers_version",
                                                "dtype",
                                                "torch_dtype",
                                                "_name_or_path",
                                                "name_or_path",
                                                "bos_token_id",
                                                "eos_token_id",
                                                "pad_token_id",
                                                "use_cache",
                                                "num_logits_to_keep",
                                                "initializer_range",
                                                "rescale_prenorm_residual",
                                                "attention_dropout",
                                                "hidden_dropout",
                                                "return_dict",
                                                "output_attentions",
                                                "output_hidden_states",
                                                "chunk_size",
                                                "use_mamba_kernels",
                                                "mamba_ssm_cache_dtype",
                                                "expand",
                                                "mamba_proj_bias",
                                                "attention_bias",
                                                "sliding_window",
                                                "time_step_max",
                                                "time_step_floor",
                                                "num_hidden_layers",
                                                "rms_norm_eps",
                                                "norm_eps",
                                                "rope_theta",
                                                "partial_rotary_factor",
                                                "n_routed_experts",
                                                "num_local_experts",
                                                "n_shared_experts",
                                                "moe_intermediate_size",
                                                "moe_shared_expert_intermediate_size",
                                                "moe_latent_size",
                                                "moe_shared_expert_overlap",
                                                "num_experts_per_tok",
                                                "routed_scaling_factor",
                                                "n_group",
                                                "topk_group",
                                                "norm_topk_prob",
                                                "num_nextn_predict_layers",
                                                "mtp_layers_block_type",
                                                "mtp_hybrid_override_pattern"};
  return keys;
}

[[noreturn]] void refuse_experts(const ConfigReader& reader, const std::string& key, std::size_t layer) {
  reader.fail(key, "M (mamba2), * (attention) or - (mlp) at layer " + std::to_string(layer) +
                       ": mixture-of-experts layers are not supported yet");
}

std::vector<LayerKind> read_pattern(ConfigReader& reader) {
  const std::string key = "hybrid_override_pattern";
  std::vector<LayerKind> layers;
  for (const char letter : reader.word(key, "")) {
    if (letter == 'E') refuse_experts(reader, key, layers.size());
    if (letter == 'M')
      layers.push_back(LayerKind::mamba2);
    else if (letter == '*')
      layers.push_back(LayerKind::attention);
    else if (letter == '-')
      layers.push_back(LayerKind::mlp);
    else
      reader.fail(key,
                  std::string("only M, *, - and E; found '") + letter + "' at layer " + std::to_string(layers.size()));
  }
  return layers;
}

// The names of transformers 5 and the older ones of the published configurations.
std::vector<LayerKind> read_layer_list(ConfigReader& reader, const std::string& key) {
  static const std::map<std::string, LayerKind> kinds = {
      {"linear_attention", LayerKind::mamba2},  {"mamba", LayerKind::mamba2},        {"mamba2", LayerKind::mamba2},
      {"full_attention", LayerKind::attention}, {"attention", LayerKind::attention}, {"mlp", LayerKind::mlp}};
  std::vector<LayerKind> layers;
  for (const std::string& name : reader.words(key)) {
    if (name == "moe") refuse_experts(reader, key, layers.size());
    const auto found = kinds.find(name);
    if (found == kinds.end())
      reader.fail(key, "only linear_attention, full_attention, mlp and moe; found \"" + name + "\" at layer " +
                           std::to_string(layers.size()));
    layers.push_back(found->second);
  }
  return layers;
}

// transformers' own precedence: an explicit list wins over the pattern.
std::vector<LayerKind> read_layers(ConfigReader& reader) {
  std::vector<LayerKind> layers;
  std::string key = "hybrid_override_pattern";
  for (const char* list : {"layers_block_type", "layer_types"})
    if (layers.empty() && reader.has(list)) layers = read_layer_list(reader, key = list);
  const std::vector<LayerKind> pattern = read_pattern(reader);
  if (layers.empty()) layers = pattern;
  if (layers.empty()) reader.fail(key, "the layers, as a pattern of M, * and - or as a list");
  if (!pattern.empty() && pattern != layers) reader.fail(key, "the same layers as hybrid_override_pattern gives");
  return layers;
}

void check_mamba(ConfigReader& reader, const mamba2::Shape& shape) {
  if (shape.head_dim % 8 != 0 || shape.head_dim > 128) reader.fail("mamba_head_dim", "a multiple of 8 up to 128");
  if (shape.state_size % 8 != 0 || shape.state_size > 256) reader.fail("ssm_state_size", "a multiple of 8 up to 256");
  if (shape.num_heads % shape.num_groups != 0)
    reader.fail("n_groups", "a divisor of mamba_num_heads (" + std::to_string(shape.num_heads) + ")");
}

void read_mamba(ConfigReader& reader, NemotronHConfig& config) {
  mamba2::Shape& shape = config.architecture.mamba;
  shape.num_heads = reader.positive("mamba_num_heads");
  shape.num_groups = reader.positive("n_groups");
  shape.head_dim = reader.positive("mamba_head_dim");
  shape.state_size = reader.positive("ssm_state_size");
  check_mamba(reader, shape);
  config.architecture.conv_kernel = reader.positive("conv_kernel", 4);
  if (config.architecture.conv_kernel < 2 || config.architecture.conv_kernel > 8) reader.fail("conv_kernel", "2 to 8");
  reader.require("mamba_hidden_act", {"silu", "swish"}, "other activations are not supported");
  config.use_bias = reader.flag("use_bias", false);
  config.use_conv_bias = reader.flag("use_conv_bias", true);

  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> limit = reader.numbers("time_step_limit", {0.0, infinity});
  if (limit.size() != 2 || limit[0] < 0.0 || limit[0] > limit[1])
    reader.fail("time_step_limit", "[min, max] with 0 <= min <= max");
  config.time_step_limit_min = limit[0];
  config.time_step_limit_max = limit[1];
  config.time_step_min = reader.number("time_step_min", 0.001);
  if (config.time_step_min < 0.0 || config.time_step_min == infinity)
    reader.fail("time_step_min", "a finite number of at least 0");
}

void read_attention(ConfigReader& reader, NemotronHConfig& config) {
  Architecture& architecture = config.architecture;
  architecture.num_heads = reader.positive("num_attention_heads");
  architecture.num_kv_heads = reader.positive("num_key_value_heads", architecture.num_heads);
  if (architecture.num_heads % architecture.num_kv_heads != 0)
    reader.fail("num_key_value_heads",
                "a divisor of num_attention_heads (" + std::to_string(architecture.num_heads) + ")");
  // The first published configurations say attention_head_dim.
  architecture.head_dim = reader.positive("head_dim", reader.positive("attention_head_dim", 128));
}

// Reads the keys of a layer kind that the pattern does not use without demanding that they make sense.
void ignore_unused(ConfigReader& reader, const Architecture& architecture) {
  if (architecture.count(LayerKind::mamba2) == 0)
    reader.ignore({"mamba_num_heads", "n_groups", "mamba_head_dim", "ssm_state_size", "conv_kernel", "mamba_hidden_act",
                   "use_bias", "use_conv_bias", "time_step_limit", "time_step_min"});
  if (architecture.count(LayerKind::attention) == 0)
    reader.ignore({"num_attention_heads", "num_key_value_heads", "head_dim", "attention_head_dim"});
  if (architecture.count(LayerKind::mlp) == 0) reader.ignore({"intermediate_size", "mlp_hidden_act", "mlp_bias"});
}

}  // namespace

NemotronHConfig read_nemotron_h_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  NemotronHConfig config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.layers = read_layers(reader);
  architecture.vocab_size = reader.positive("vocab_size");
  architecture.hidden_size = reader.positive("hidden_size");
  architecture.max_positions = reader.positive("max_position_embeddings", 4096);
  if (architecture.count(LayerKind::mamba2) != 0) read_mamba(reader, config);
  if (architecture.count(LayerKind::attention) != 0) read_attention(reader, config);
  if (architecture.count(LayerKind::mlp) != 0) {
    architecture.intermediate_size = reader.positive("intermediate_size");
    reader.require("mlp_hidden_act", {"relu2"}, "other activations are not supported");
    config.mlp_bias = reader.flag("mlp_bias", false);
  }
  config.norm_eps = reader.number("layer_norm_epsilon", 1e-5);
  if (config.norm_eps < 0.0 || config.norm_eps > 1.0) reader.fail("layer_norm_epsilon", "a number from 0 to 1");
  config.residual_in_fp32 = reader.flag("residual_in_fp32", false);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  ignore_unused(reader, architecture);
  reader.ignore(ignored_keys());
  reader.finish();
  architecture.keys_read = reader.keys_read();
  architecture.keys_ignored = reader.keys_ignored();
  return config;
}

}  // namespace replayeval
