#include "tests/eval/model/tiny_nemotron_h.h"

#include <cmath>
#include <random>

namespace replayeval::testing {
namespace {

constexpr std::int64_t vocab = 101, hidden = 44, mlp = 52;
constexpr std::int64_t heads = 6, groups = 3, head_dim = 8, state_size = 24, conv_kernel = 4;
constexpr std::int64_t query_heads = 4, kv_heads = 2, attention_dim = 12;
constexpr std::int64_t inner = heads * head_dim, channels = inner + 2 * groups * state_size;

float spread(std::int64_t in) { return 1.0F / std::sqrt(static_cast<float>(in)); }

}  // namespace

TinyNemotronH::TinyNemotronH() {
  config = nlohmann::json::parse(R"({
    "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "dtype": "float32",
    "hybrid_override_pattern": "M-*M*", "mlp_hidden_act": "relu2", "mamba_hidden_act": "silu",
    "use_bias": true, "mlp_bias": true, "use_conv_bias": true, "tie_word_embeddings": false,
    "residual_in_fp32": false, "layer_norm_epsilon": 1e-5, "max_position_embeddings": 256,
    "time_step_limit": [0.0, {"__float__": "Infinity"}], "time_step_min": 0.001})");
  config.update({{"vocab_size", vocab},
                 {"hidden_size", hidden},
                 {"intermediate_size", mlp},
                 {"mamba_num_heads", heads},
                 {"n_groups", groups},
                 {"mamba_head_dim", head_dim},
                 {"ssm_state_size", state_size},
                 {"conv_kernel", conv_kernel},
                 {"num_attention_heads", query_heads},
                 {"num_key_value_heads", kv_heads},
                 {"head_dim", attention_dim}});
  add("backbone.embeddings.weight", {vocab, hidden}, 0, 1);
  add_mamba("backbone.layers.0");
  add("backbone.layers.1.norm.weight", {hidden}, 1, 0.2F);
  add("backbone.layers.1.mixer.up_proj.weight", {mlp, hidden}, 0, spread(hidden));
  add("backbone.layers.1.mixer.up_proj.bias", {mlp}, 0, 0.2F);
  add("backbone.layers.1.mixer.down_proj.weight", {hidden, mlp}, 0, spread(mlp));
  add("backbone.layers.1.mixer.down_proj.bias", {hidden}, 0, 0.2F);
  add_mamba("backbone.layers.3");
  for (const char* layer : {"backbone.layers.2", "backbone.layers.4"}) {
    add(std::string(layer) + ".norm.weight", {hidden}, 1, 0.2F);
    const std::string name = std::string(layer) + ".mixer.";
    add(name + "q_proj.weight", {query_heads * attention_dim, hidden}, 0, spread(hidden));
    add(name + "k_proj.weight", {kv_heads * attention_dim, hidden}, 0, spread(hidden));
    add(name + "v_proj.weight", {kv_heads * attention_dim, hidden}, 0, spread(hidden));
    add(name + "o_proj.weight", {hidden, query_heads * attention_dim}, 0, spread(query_heads * attention_dim));
  }
  add("backbone.norm_f.weight", {hidden}, 1, 0.2F);
  add("lm_head.weight", {vocab, hidden}, 0, spread(hidden));
}

void TinyNemotronH::add_mamba(const std::string& layer) {
  add(layer + ".norm.weight", {hidden}, 1, 0.2F);
  const std::string name = layer + ".mixer.";
  add(name + "A_log", {heads}, 0, 0.7F);
  add(name + "D", {heads}, 1, 0.3F);
  add(name + "dt_bias", {heads}, -1, 0.7F);
  add(name + "conv1d.weight", {channels, 1, conv_kernel}, 0, 0.5F);
  add(name + "conv1d.bias", {channels}, 0, 0.2F);
  add(name + "norm.weight", {inner}, 1, 0.2F);
  add(name + "in_proj.weight", {inner + channels + heads, hidden}, 0, spread(hidden));
  add(name + "in_proj.bias", {inner + channels + heads}, 0, 0.2F);
  add(name + "out_proj.weight", {hidden, inner}, 0, spread(inner));
  add(name + "out_proj.bias", {hidden}, 0, 0.2F);
}

void TinyNemotronH::add(const std::string& name, std::vector<std::int64_t> shape, float mean, float deviation) {
  std::mt19937 generator(seed_++);
  std::normal_distribution<float> values(mean, deviation);
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  std::vector<float> data(static_cast<std::size_t>(elements));
  for (float& value : data) value = values(generator);
  tensors[name] = float_tensor(std::move(shape), data);
}

void TinyNemotronH::write() const {
  write_bytes(folder_.path() / "config.json", config.dump());
  write_safetensors(folder_.path() / "model.safetensors", tensors);
}

Checkpoint TinyNemotronH::open() const {
  write();
  return Checkpoint::open(folder_.path());
}

}  // namespace replayeval::testing
