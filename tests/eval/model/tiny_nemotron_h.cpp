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

void TinyNemotronH::add_mixture() {
  constexpr std::int64_t experts = 6, inner_size = 26, latent = 20, shared = 36;
  config["hybrid_override_pattern"] = config["hybrid_override_pattern"].get<std::string>() + "E";
  config.update({{"n_routed_experts", experts},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", inner_size},
                 {"moe_latent_size", latent},
                 {"moe_shared_expert_intermediate_size", shared},
                 {"routed_scaling_factor", 2.5}});
  const std::string layer = "backbone.layers.5", name = layer + ".mixer.";
  add(layer + ".norm.weight", {hidden}, 1, 0.2F);
  add(name + "gate.weight", {experts, hidden}, 0, spread(hidden));
  add(name + "gate.e_score_correction_bias", {experts}, 0, 0.2F);
  for (std::int64_t i = 0; i < experts; ++i) {
    const std::string expert = name + "experts." + std::to_string(i);
    add(expert + ".up_proj.weight", {inner_size, latent}, 0, spread(latent));
    add(expert + ".down_proj.weight", {latent, inner_size}, 0, spread(inner_size));
  }
  const auto add_linear = [&](const std::string& linear, std::int64_t out, std::int64_t in) {
    add(name + linear + ".weight", {out, in}, 0, spread(in));
    add(name + linear + ".bias", {out}, 0, 0.2F);
  };
  add_linear("fc1_latent_proj", latent, hidden);
  add_linear("fc2_latent_proj", hidden, latent);
  add_linear("shared_experts.up_proj", shared, hidden);
  add_linear("shared_experts.down_proj", hidden, shared);
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
