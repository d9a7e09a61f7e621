#include "eval/model/granitemoehybrid.h"

#include <string>
#include <utility>

#include "eval/model/expert_weights.h"
#include "eval/model/gated_mlp.h"
#include "eval/model/granitemoehybrid_config.h"
#include "eval/model/hybrid_builder.h"
#include "eval/model/mixture_block.h"

namespace replayeval {
namespace {

std::unique_ptr<Block> load_attention(HybridBuilder& builder, const GraniteMoeHybridConfig& config,
                                      const std::string& name) {
  const Architecture& architecture = config.architecture;
  AttentionForm form;
  form.num_heads = architecture.num_heads;
  form.num_kv_heads = architecture.num_kv_heads;
  form.head_dim = architecture.head_dim;
  form.scale = config.attention_multiplier;
  if (config.rotary) form.rotary = make_rotary(*config.rotary, builder.device());
  return builder.attention(name, form, config.attention_bias, config.attention_bias);
}

// input_linear holds gate and up, in this order.
std::unique_ptr<Block> load_shared_mlp(HybridBuilder& builder, const std::string& name, std::int64_t inner) {
  const std::int64_t hidden = builder.architecture().hidden_size;
  const at::Tensor gate_up = builder.linear(name + ".input_linear", 2 * inner, hidden, false).weight;
  GatedMlpWeights dense;
  dense.gate_proj.weight = gate_up.narrow(0, 0, inner);
  dense.up_proj.weight = gate_up.narrow(0, inner, inner);
  dense.down_proj = builder.linear(name + ".output_linear", hidden, inner, false);
  return std::make_unique<GatedMlpBlock>(std::move(dense), GatedMlpForm{});
}

// What transformers saves for a shared MLP of size 0: two tensors without elements.
void skip_empty_mlp(HybridBuilder& builder, const std::string& name) {
  const std::int64_t hidden = builder.architecture().hidden_size;
  if (builder.weights().has(name + ".input_linear.weight")) builder.linear(name + ".input_linear", 0, hidden, false);
  if (builder.weights().has(name + ".output_linear.weight")) builder.linear(name + ".output_linear", hidden, 0, false);
}

// The published names first, then transformers' own.
Router load_router(HybridBuilder& builder, const std::string& name, const MixtureShape& shape) {
  const std::string published = name + ".router.layer.weight", renamed = name + ".router.weight";
  RouterForm form;
  form.scores = RouterScores::softmax_of_chosen;
  form.chosen = shape.chosen;
  return {builder.weights().load(builder.weights().has(renamed) ? renamed : published,
                                 {shape.experts, builder.architecture().hidden_size}, builder.compute_dtype()),
          {},
          form};
}

std::unique_ptr<Block> load_mixture(HybridBuilder& builder, const std::string& layer) {
  const MixtureShape& shape = builder.architecture().mixture;
  const std::int64_t hidden = builder.architecture().hidden_size, inner = shape.intermediate_size;
  const std::string name = layer + ".block_sparse_moe";
  MixtureParts parts;
  parts.router = load_router(builder, name, shape);
  parts.experts.form = ExpertForm::gated_silu;
  const auto experts = [&](const std::string& published, const std::string& renamed, std::int64_t out,
                           std::int64_t in) {
    return load_experts(builder, {{name + "." + published, name + "." + renamed}, "", {}}, shape.experts, out, in);
  };
  parts.experts.up = experts("input_linear.weight", "experts.gate_up_proj", 2 * inner, hidden);
  parts.experts.down = experts("output_linear.weight", "experts.down_proj", hidden, inner);
  if (shape.shared_intermediate_size != 0)
    parts.shared = load_shared_mlp(builder, layer + ".shared_mlp", shape.shared_intermediate_size);
  else
    skip_empty_mlp(builder, layer + ".shared_mlp");
  return std::make_unique<MixtureBlock>(std::move(parts));
}

std::unique_ptr<Block> load_mamba(HybridBuilder& builder, const GraniteMoeHybridConfig& config, NormSpan span,
                                  const std::string& name) {
  return builder.mamba(name, form_of_keys(config.mamba, config.architecture, config.norm_eps, span));
}

void load_layer(HybridBuilder& builder, const GraniteMoeHybridConfig& config, LayerKind kind, NormSpan span,
                const std::string& name) {
  const Residual residual = {config.residual_multiplier, false};
  std::unique_ptr<Block> mixer = kind == LayerKind::attention ? load_attention(builder, config, name + ".self_attn")
                                                              : load_mamba(builder, config, span, name + ".mamba");
  builder.add(name + ".input_layernorm", config.norm_eps, std::move(mixer), residual);
  std::unique_ptr<Block> feed_forward =
      config.architecture.mixture.experts != 0
          ? load_mixture(builder, name)
          : load_shared_mlp(builder, name + ".shared_mlp", config.architecture.intermediate_size);
  builder.add(name + ".post_attention_layernorm", config.norm_eps, std::move(feed_forward), residual);
}

}  // namespace

Architecture describe_granitemoehybrid(const Checkpoint& checkpoint) {
  return read_granitemoehybrid_config(checkpoint).architecture;
}

std::unique_ptr<Model> load_granitemoehybrid(const Checkpoint& checkpoint, const ModelOptions& options) {
  const GraniteMoeHybridConfig config = read_granitemoehybrid_config(checkpoint);
  HybridBuilder builder(checkpoint, config.architecture, options, {"model."}, "embed_tokens.weight");
  builder.embeddings("embed_tokens", config.embedding_multiplier);
  const std::vector<LayerKind>& layers = config.architecture.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    builder.begin_layer(static_cast<std::int64_t>(i));
    load_layer(builder, config, layers[i], options.norm_span, "layers." + std::to_string(i));
  }
  builder.finish("norm", config.norm_eps, "lm_head", config.tie_word_embeddings, 1.0 / config.logits_scaling);
  return builder.build();
}

}  // namespace replayeval
