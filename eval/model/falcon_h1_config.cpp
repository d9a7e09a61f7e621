#include "eval/model/falcon_h1_config.h"

#include <algorithm>
#include <cmath>

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"
#include "eval/model/layer_list.h"

namespace replayeval {
namespace {

// Beside the usual ones: names of the layers, which are all alike, and keys of the published folders that their code
// does not look at.
const std::vector<std::string>& ignored_keys() {
  static const std::vector<std::string> keys = {"layer_types",      "layers_block_type",    "attn_layer_indices",
                                                "mamba_use_mlp",    "mlp_expansion_factor", "time_step_min",
                                                "mamba_chunk_size", "time_step_max",        "time_step_floor",
                                                "time_step_rank",   "use_mamba_kernels",    "pretraining_tp"};
  return keys;
}

void read_attention(ConfigReader& reader, FalconH1Config& config) {
  Architecture& architecture = config.architecture;
  architecture.num_heads = reader.positive("num_attention_heads", 32);
  // An explicit null is as many as there are heads.
  const bool as_many = reader.present("num_key_value_heads") && !reader.has("num_key_value_heads");
  architecture.num_kv_heads = reader.positive("num_key_value_heads", as_many ? architecture.num_heads : 8);
  if (architecture.num_heads % architecture.num_kv_heads != 0)
    reader.fail("num_key_value_heads",
                "a divisor of num_attention_heads (" + std::to_string(architecture.num_heads) + ")");
  architecture.head_dim =
      reader.positive("head_dim", std::max<std::int64_t>(1, architecture.hidden_size / architecture.num_heads));
  config.attention_bias = reader.flag("attention_bias", false);
  RotaryRules rules;
  rules.head_dim = architecture.head_dim;
  rules.max_positions = architecture.max_positions;
  rules.whole_heads = true;
  config.rotary = read_rotary(reader, rules);
}

// The mixer's inner width.
std::int64_t read_inner_size(ConfigReader& reader, std::int64_t hidden_size) {
  const std::int64_t expanded = reader.positive("mamba_expand", 2) * hidden_size;
  const bool is_null = reader.present("mamba_d_ssm") && !reader.has("mamba_d_ssm");
  return reader.positive("mamba_d_ssm", is_null ? expanded : 1024);
}

void read_mixer(ConfigReader& reader, FalconH1Config& config) {
  Architecture& architecture = config.architecture;
  mamba2::Shape& shape = architecture.mamba;
  shape.num_heads = reader.positive("mamba_n_heads", 128);
  shape.num_groups = reader.positive("mamba_n_groups", 1);
  shape.state_size = reader.positive("mamba_d_state", 256);
  architecture.conv_kernel = reader.positive("mamba_d_conv", 4);
  const std::int64_t inner = read_inner_size(reader, architecture.hidden_size);
  shape.head_dim = inner / shape.num_heads;
  if (!reader.says("mamba_d_head", "auto")) shape.head_dim = reader.positive("mamba_d_head", shape.head_dim);
  if (shape.head_dim * shape.num_heads != inner)
    reader.fail("mamba_n_heads", "mamba_n_heads * mamba_d_head to be the mixer's width, " + std::to_string(inner));
  check_mamba_sizes(reader, {"mamba_n_heads", "mamba_n_groups", "mamba_d_head", "mamba_d_state", "mamba_d_conv"}, shape,
                    architecture.conv_kernel);
  config.mamba_conv_bias = reader.flag("mamba_conv_bias", true);
  config.mamba_proj_bias = reader.flag("mamba_proj_bias", false);
  config.projectors_bias = reader.flag("projectors_bias", false);
  config.mamba_rms_norm = reader.flag("mamba_rms_norm", false);
  if (config.mamba_rms_norm) architecture.norm_group_size = norm_of_each_group(shape);
  config.mamba_norm_before_gate = reader.flag("mamba_norm_before_gate", true);
  config.time_step_limit = read_time_step_limit(reader, "time_step_limit");
}

template <std::size_t size>
std::array<double, size> read_multipliers(ConfigReader& reader, const std::string& key) {
  const std::vector<double> given = reader.numbers(key, std::vector<double>(size, 1.0));
  const bool finite = std::none_of(given.begin(), given.end(), [](double value) { return std::isinf(value); });
  if (given.size() != size || !finite) reader.fail(key, std::to_string(size) + " finite numbers");
  std::array<double, size> multipliers = {};
  std::copy(given.begin(), given.end(), multipliers.begin());
  return multipliers;
}

void read_all_multipliers(ConfigReader& reader, FalconH1Config& config) {
  config.embedding_multiplier = read_finite(reader, "embedding_multiplier", 1.0);
  config.lm_head_multiplier = read_finite(reader, "lm_head_multiplier", 1.0);
  config.attention_in_multiplier = read_finite(reader, "attention_in_multiplier", 1.0);
  config.attention_out_multiplier = read_finite(reader, "attention_out_multiplier", 1.0);
  config.key_multiplier = read_finite(reader, "key_multiplier", 1.0);
  config.ssm_in_multiplier = read_finite(reader, "ssm_in_multiplier", 1.0);
  config.ssm_out_multiplier = read_finite(reader, "ssm_out_multiplier", 1.0);
  config.ssm_multipliers = read_multipliers<5>(reader, "ssm_multipliers");
  config.mlp_multipliers = read_multipliers<2>(reader, "mlp_multipliers");
}

}  // namespace

// Sizes that are missing are those of the published code's own defaults.
FalconH1Config read_falcon_h1_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  FalconH1Config config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.vocab_size = reader.positive("vocab_size", 128000);
  architecture.hidden_size = reader.positive("hidden_size", 4096);
  architecture.intermediate_size = reader.positive("intermediate_size", 14336);
  architecture.max_positions = reader.positive("max_position_embeddings", 8192);
  architecture.layers = read_layer_count(reader, LayerKind::mamba2_attention, 32);
  read_attention(reader, config);
  read_mixer(reader, config);
  read_all_multipliers(reader, config);
  // The convolution's activation, too.
  reader.require("hidden_act", {"silu", "swish"}, "other activations are not supported");
  config.mlp_bias = reader.flag("mlp_bias", false);
  config.norm_eps = read_norm_eps(reader, "rms_norm_eps", 1e-5);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  ignore_common_keys(reader);
  reader.ignore(ignored_keys());
  finish_keys(reader, architecture);
  return config;
}

}  // namespace replayeval
