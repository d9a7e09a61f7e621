#include "eval/model/qwen_hybrid.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "eval/model/delta_rule_block.h"
#include "eval/model/expert_weights.h"
#include "eval/model/mixture_block.h"
#include "eval/model/normed_attention.h"

namespace replayeval {
namespace {

std::unique_ptr<Block> load_delta_net(HybridBuilder& builder, const QwenHybridConfig& config,
                                      const delta_rule::Numerics& numerics, LoadDeltaInput load_input,
                                      const std::string& name) {
  const Architecture& architecture = config.architecture;
  const delta_rule::Shape& shape = architecture.delta;
  const std::int64_t heads = shape.num_value_heads;
  WeightLoader& loader = builder.weights();
  DeltaRuleDense dense;
  dense.in_proj = load_input(builder, name);
  dense.out_proj = builder.linear(name + ".out_proj", architecture.hidden_size, heads * shape.value_dim, false);
  MixerConv conv = builder.conv(name + ".conv1d", architecture.conv_dim(), false);
  DeltaRuleWeights weights;
  weights.A_log = loader.load(name + ".A_log", {heads}, at::kFloat);
  weights.dt_bias = loader.load(name + ".dt_bias", {heads}, at::kFloat).unsqueeze(1);
  weights.numerics = numerics;
  const at::Tensor norm = loader.load(name + ".norm.weight", {shape.value_dim}, at::kFloat);  // not zero-centred
  return add_delta_rule(builder, std::move(dense), std::move(conv),
                        delta_rule_norm(shape, norm, GateActivation::silu, config.norm_eps), std::move(weights));
}

std::unique_ptr<Block> load_attention(HybridBuilder& builder, const QwenHybridConfig& config, const std::string& name) {
  const Architecture& architecture = config.architecture;
  const std::int64_t hidden = architecture.hidden_size, head_dim = architecture.head_dim;
  const std::int64_t query = architecture.num_heads * head_dim, key = architecture.num_kv_heads * head_dim;
  NormedAttentionWeights weights;
  weights.gated = true;
  weights.q_proj = builder.linear(name + ".q_proj", 2 * query, hidden, config.attention_bias);
  weights.k_proj = builder.linear(name + ".k_proj", key, hidden, config.attention_bias);
  weights.v_proj = builder.linear(name + ".v_proj", key, hidden, config.attention_bias);
  weights.o_proj = builder.linear(name + ".o_proj", hidden, query, config.attention_bias);
  weights.q_norm = builder.norm(name + ".q_norm", config.norm_eps, head_dim);
  weights.k_norm = builder.norm(name + ".k_norm", config.norm_eps, head_dim);
  AttentionForm form;
  form.num_heads = architecture.num_heads;
  form.num_kv_heads = architecture.num_kv_heads;
  form.head_dim = head_dim;
  form.rotary = make_rotary(config.rotary, builder.device());
  const std::size_t index =
      builder.add_attention_cache({architecture.num_kv_heads, head_dim, head_dim, builder.device()});
  return std::make_unique<NormedAttentionBlock>(std::move(weights), std::move(form), index);
}

// Experts lie in the folder one by one, as published, or all in one tensor, as transformers holds them.
std::unique_ptr<Block> load_mixture(HybridBuilder& builder, const QwenHybridConfig& config, const std::string& name) {
  const MixtureShape& shape = config.architecture.mixture;
  const std::int64_t hidden = config.architecture.hidden_size, inner = shape.intermediate_size;
  const std::string each = name + ".experts";
  MixtureParts parts;
  parts.router.form.scores = RouterScores::softmax_of_all;
  parts.router.form.chosen = shape.chosen;
  parts.router.form.renormalise = config.renormalise;
  // Logits are of the compute dtype in the published code.
  parts.router.weight = builder.weights().load(name + ".gate.weight", {shape.experts, hidden}, builder.compute_dtype());
  parts.experts.form = ExpertForm::gated_silu;
  parts.experts.up = load_experts(builder, {{each + ".gate_up_proj"}, each, {"gate_proj.weight", "up_proj.weight"}},
                                  shape.experts, 2 * inner, hidden);
  parts.experts.down =
      load_experts(builder, {{each + ".down_proj"}, each, {"down_proj.weight"}}, shape.experts, hidden, inner);
  parts.shared = builder.gated_mlp(name + ".shared_expert", {}, false, shape.shared_intermediate_size);
  parts.shared_gate = builder.linear(name + ".shared_expert_gate", 1, hidden, false);
  return std::make_unique<MixtureBlock>(std::move(parts));
}

}  // namespace

std::unique_ptr<Model> load_qwen_hybrid(const Checkpoint& checkpoint, const ModelOptions& options,
                                        const QwenHybridConfig& config, const std::vector<std::string>& prefixes,
                                        LoadDeltaInput load_input) {
  HybridBuilder builder(checkpoint, config.architecture, options, prefixes, "embed_tokens.weight");
  builder.zero_centre_norms();
  builder.embeddings("embed_tokens");
  const std::vector<LayerKind>& layers = config.architecture.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = "layers." + std::to_string(i);
    builder.begin_layer(static_cast<std::int64_t>(i));
    std::unique_ptr<Block> mixer =
        layers[i] == LayerKind::attention
            ? load_attention(builder, config, name + ".self_attn")
            : load_delta_net(builder, config, options.delta_rule, load_input, name + ".linear_attn");
    builder.add(name + ".input_layernorm", config.norm_eps, std::move(mixer));
    std::unique_ptr<Block> feed_forward =
        config.mixtures[i] ? load_mixture(builder, config, name + ".mlp") : builder.gated_mlp(name + ".mlp", {}, false);
    builder.add(name + ".post_attention_layernorm", config.norm_eps, std::move(feed_forward));
  }
  builder.finish("norm", config.norm_eps, "lm_head", config.tie_word_embeddings);
  // Neither multi-token prediction heads nor image encoders are part of the language model.
  return builder.build({"mtp.", "model.visual."});
}

}  // namespace replayeval
