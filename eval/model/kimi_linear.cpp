#include "eval/model/kimi_linear.h"

#include <string>
#include <utility>

#include "eval/model/delta_rule_block.h"
#include "eval/model/expert_weights.h"
#include "eval/model/hybrid_builder.h"
#include "eval/model/kimi_linear_config.h"
#include "eval/model/latent_attention.h"
#include "eval/model/mixture_block.h"

namespace replayeval {
namespace {

// The output's gate and the decay's go through as many channels as a head has. Published folders keep the decay's
// tensors beside the others, transformers has them in a module of their own.
std::unique_ptr<Block> load_mixer(HybridBuilder& builder, const KimiLinearConfig& config,
                                  const delta_rule::Numerics& numerics, const std::string& name) {
  const delta_rule::Shape& shape = config.architecture.delta;
  const DeltaRuleWidths widths = delta_rule_widths(delta_rule::Family::kda, shape);
  const std::int64_t hidden = config.architecture.hidden_size, heads = shape.num_value_heads, narrow = shape.key_dim;
  WeightLoader& stored = builder.weights();
  const std::string decay = stored.stored_name({name, name + ".forget_gate"}, ".A_log");
  const auto projection = [&](const std::string& tensor, std::int64_t width) {
    return builder.linear(tensor, width, hidden, false);
  };
  DeltaRuleDense dense;
  dense.in_proj = stacked({projection(name + ".q_proj", widths.q), projection(name + ".k_proj", widths.k),
                           projection(name + ".v_proj", widths.v), projection(name + ".g_a_proj", narrow),
                           projection(name + ".b_proj", widths.b), projection(decay + ".f_a_proj", narrow)});
  dense.z_proj = builder.linear(name + ".g_b_proj", widths.z, narrow, false);
  dense.f_proj = builder.linear(decay + ".f_b_proj", widths.f, narrow, false);
  dense.out_proj = builder.linear(name + ".o_proj", hidden, widths.v, false);
  DeltaRuleWeights weights;
  weights.A_log = stored.load(decay + ".A_log", {1, 1, heads, 1}, at::kFloat).view({heads});
  weights.dt_bias = stored.load(decay + ".dt_bias", {heads * shape.key_dim}, at::kFloat).view({heads, shape.key_dim});
  weights.numerics = numerics;
  const Norm norm = builder.norm(name + ".o_norm", config.norm_eps, shape.value_dim);
  return add_delta_rule(builder, std::move(dense), load_delta_conv(builder, name),
                        delta_rule_norm(shape, norm.weight, GateActivation::sigmoid, norm.eps), std::move(weights));
}

// Experts one tensor each, w1, w3 and w2 for gate, up and down, as published, or fused, as inside transformers.
std::unique_ptr<Block> load_mixture(HybridBuilder& builder, const RouterForm& router, const std::string& name) {
  const MixtureShape& shape = builder.architecture().mixture;
  const std::int64_t hidden = builder.architecture().hidden_size, inner = shape.intermediate_size;
  const std::string each = name + ".experts";
  MixtureParts parts;
  // Logits are float32 in the published code, whatever the compute dtype.
  parts.router = {builder.weights().load(name + ".gate.weight", {shape.experts, hidden}, at::kFloat),
                  builder.weights().load(name + ".gate.e_score_correction_bias", {shape.experts}, at::kFloat), router};
  parts.experts.form = ExpertForm::gated_silu;
  parts.experts.up = load_experts(builder, {{each + ".gate_up_proj"}, each, {"w1.weight", "w3.weight"}}, shape.experts,
                                  2 * inner, hidden);
  parts.experts.down =
      load_experts(builder, {{each + ".down_proj"}, each, {"w2.weight"}}, shape.experts, hidden, inner);
  parts.shared = builder.gated_mlp(name + ".shared_experts", {}, false, shape.shared_intermediate_size);
  return std::make_unique<MixtureBlock>(std::move(parts));
}

void load_layer(HybridBuilder& builder, const KimiLinearConfig& config, const delta_rule::Numerics& numerics,
                std::size_t index) {
  constexpr double latent_norm_eps = 1e-6;  // whatever rms_norm_eps says
  const std::string name = "layers." + std::to_string(index);
  builder.begin_layer(static_cast<std::int64_t>(index));
  builder.add(name + ".input_layernorm", config.norm_eps,
              config.architecture.layers[index] == LayerKind::attention
                  ? load_latent_attention(builder, name + ".self_attn", config.attention, latent_norm_eps)
                  : load_mixer(builder, config, numerics, name + ".self_attn"));
  // Published folders call mixtures alone block_sparse_moe; transformers saves MLPs under that name, too.
  const std::string mixture = name + ".block_sparse_moe", mlp = name + ".mlp";
  std::unique_ptr<Block> feed_forward =
      config.sparse[index]
          ? load_mixture(builder, config.router, builder.weights().stored_name({mixture, mlp}, ".gate.weight"))
          : builder.gated_mlp(builder.weights().stored_name({mlp, mixture}, ".up_proj.weight"), {}, false);
  builder.add(name + ".post_attention_layernorm", config.norm_eps, std::move(feed_forward));
}

}  // namespace

Architecture describe_kimi_linear(const Checkpoint& checkpoint) {
  return read_kimi_linear_config(checkpoint).architecture;
}

std::unique_ptr<Model> load_kimi_linear(const Checkpoint& checkpoint, const ModelOptions& options) {
  const KimiLinearConfig config = read_kimi_linear_config(checkpoint);
  HybridBuilder builder(checkpoint, config.architecture, options, {"model."}, "embed_tokens.weight");
  builder.embeddings("embed_tokens");
  for (std::size_t i = 0; i < config.architecture.layers.size(); ++i)
    load_layer(builder, config, options.delta_rule, i);
  builder.finish("norm", config.norm_eps, "lm_head", /*tied=*/false);
  return builder.build();
}

}  // namespace replayeval
