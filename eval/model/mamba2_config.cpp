#include "eval/model/mamba2_config.h"

#include <limits>

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"
#include "eval/model/layer_list.h"

namespace replayeval {
namespace {

// Beside the usual ones: derived sizes, and switches of the folders' first version that its code never read. (It always
// gates before the norm.)
const std::vector<std::string>& ignored_keys() {
  static const std::vector<std::string> keys = {
      "time_step_min",  "intermediate_size",        "norm_before_gate",      "layer_types",
      "chunk_size",     "rescale_prenorm_residual", "time_step_max",         "time_step_floor",
      "time_step_rank", "time_step_scale",          "time_step_init_scheme", "use_mamba_kernels"};
  return keys;
}

// Sizes that are missing are those of the published code's own defaults.
void read_mixer(ConfigReader& reader, Mamba2Config& config) {
  Architecture& architecture = config.architecture;
  mamba2::Shape& shape = architecture.mamba;
  shape.num_heads = reader.positive("num_heads", 128);
  shape.head_dim = reader.positive("head_dim", 64);
  shape.num_groups = reader.positive("n_groups", 8);
  shape.state_size = reader.positive("state_size", 128);
  architecture.conv_kernel = reader.positive("conv_kernel", 4);
  check_mamba_sizes(reader, {"num_heads", "n_groups", "head_dim", "state_size", "conv_kernel"}, shape,
                    architecture.conv_kernel);
  architecture.norm_group_size = norm_of_each_group_in_training(shape);
  const std::int64_t inner = reader.positive("expand", 2) * architecture.hidden_size;
  if (shape.num_heads * shape.head_dim != inner)
    reader.fail("num_heads", "num_heads * head_dim to be expand * hidden_size, " + std::to_string(inner));
  reader.require("hidden_act", {"silu", "swish"}, "other activations are not supported");
  reader.require("rms_norm", {true}, "the published code always normalises");
  config.use_bias = reader.flag("use_bias", false);
  config.use_conv_bias = reader.flag("use_conv_bias", true);
  config.time_step_limit = read_time_step_limit(reader, "time_step_limit");
}

}  // namespace

Mamba2Config read_mamba2_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  Mamba2Config config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.vocab_size = reader.positive("vocab_size", 32768);
  architecture.hidden_size = reader.positive("hidden_size", 4096);
  architecture.max_positions = std::numeric_limits<std::int32_t>::max();  // nothing in this model counts positions
  architecture.layers = read_layer_count(reader, LayerKind::mamba2, 64);
  read_mixer(reader, config);
  config.norm_eps = read_norm_eps(reader, "layer_norm_epsilon", 1e-5);
  config.residual_in_fp32 = reader.flag("residual_in_fp32", true);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  ignore_common_keys(reader);
  reader.ignore(ignored_keys());
  finish_keys(reader, architecture);
  return config;
}

}  // namespace replayeval
