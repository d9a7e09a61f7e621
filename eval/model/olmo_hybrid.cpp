#include "eval/model/olmo_hybrid.h"

#include <string>
#include <utility>

#include "eval/model/delta_rule_block.h"
#include "eval/model/hybrid_builder.h"
#include "eval/model/normed_attention.h"
#include "eval/model/olmo_hybrid_config.h"

namespace replayeval {
namespace {

std::unique_ptr<Block> load_mixer(HybridBuilder& builder, const OlmoHybridConfig& config,
                                  const delta_rule::Numerics& numerics, const std::string& name) {
  constexpr double output_norm_eps = 1e-5;  // whatever rms_norm_eps says
  const delta_rule::Shape& shape = config.architecture.delta;
  const DeltaRuleWidths widths = delta_rule_widths(delta_rule::Family::gated_delta, shape);
  const std::int64_t hidden = config.architecture.hidden_size;
  const auto projection = [&](const char* leaf, std::int64_t width) {
    return builder.linear(name + leaf, width, hidden, false);
  };
  DeltaRuleDense dense;
  dense.in_proj =
      stacked({projection(".q_proj", widths.q), projection(".k_proj", widths.k), projection(".v_proj", widths.v),
               projection(".g_proj", widths.z), projection(".b_proj", widths.b), projection(".a_proj", widths.f)});
  dense.out_proj = builder.linear(name + ".o_proj", hidden, widths.v, false);
  DeltaRuleWeights weights;
  weights.A_log = builder.weights().load(name + ".A_log", {shape.num_value_heads}, at::kFloat);
  weights.dt_bias = builder.weights().load(name + ".dt_bias", {shape.num_value_heads}, at::kFloat).unsqueeze(1);
  weights.allow_neg_eigval = config.allow_neg_eigval;
  weights.numerics = numerics;
  const Norm norm = builder.norm(name + ".o_norm", output_norm_eps, shape.value_dim);
  return add_delta_rule(builder, std::move(dense), load_delta_conv(builder, name),
                        delta_rule_norm(shape, norm.weight, GateActivation::silu, norm.eps), std::move(weights));
}

std::unique_ptr<Block> load_attention(HybridBuilder& builder, const OlmoHybridConfig& config, const std::string& name) {
  const Architecture& architecture = config.architecture;
  AttentionForm form;
  form.num_heads = architecture.num_heads;
  form.num_kv_heads = architecture.num_kv_heads;
  form.head_dim = architecture.head_dim;
  if (config.rotary) {
    form.rotary = make_rotary(*config.rotary, builder.device());
    form.rotary->in_fp32 = true;
  }
  const std::int64_t hidden = architecture.hidden_size;
  const std::int64_t query = form.num_heads * form.head_dim, key = form.num_kv_heads * form.head_dim;
  NormedAttentionWeights weights;
  weights.q_proj = builder.linear(name + ".q_proj", query, hidden, config.attention_bias);
  weights.k_proj = builder.linear(name + ".k_proj", key, hidden, config.attention_bias);
  weights.v_proj = builder.linear(name + ".v_proj", key, hidden, config.attention_bias);
  weights.o_proj = builder.linear(name + ".o_proj", hidden, query, config.attention_bias);
  weights.q_norm = builder.norm(name + ".q_norm", config.norm_eps, query);
  weights.k_norm = builder.norm(name + ".k_norm", config.norm_eps, key);
  const std::size_t index =
      builder.add_attention_cache({form.num_kv_heads, form.head_dim, form.head_dim, builder.device()});
  return std::make_unique<NormedAttentionBlock>(std::move(weights), form, index);
}

// The norms' names as published, then transformers' own. It saves an attention layer's post_attention_layernorm under
// the name that a linear layer's has in published folders.
void load_layer(HybridBuilder& builder, const OlmoHybridConfig& config, const delta_rule::Numerics& numerics,
                LayerKind kind, const std::string& name) {
  const auto norm_name = [&](const std::string& one, const std::string& other) {
    return builder.weights().stored_name({name + one, name + other});
  };
  const auto mlp = [&] { return builder.gated_mlp(name + ".mlp", GatedMlpForm{}, false); };
  const double eps = config.norm_eps;
  if (kind == LayerKind::attention) {
    builder.add_post_norm(norm_name(".post_attention_layernorm", ".feedforward_layer_norm"), eps,
                          load_attention(builder, config, name + ".self_attn"));
    builder.add_post_norm(name + ".post_feedforward_layernorm", eps, mlp());
    return;
  }
  builder.add(norm_name(".attention_layer_norm", ".input_layernorm"), eps,
              load_mixer(builder, config, numerics, name + ".linear_attn"));
  builder.add(norm_name(".feedforward_layer_norm", ".post_attention_layernorm"), eps, mlp());
}

}  // namespace

Architecture describe_olmo_hybrid(const Checkpoint& checkpoint) {
  return read_olmo_hybrid_config(checkpoint).architecture;
}

std::unique_ptr<Model> load_olmo_hybrid(const Checkpoint& checkpoint, const ModelOptions& options) {
  const OlmoHybridConfig config = read_olmo_hybrid_config(checkpoint);
  HybridBuilder builder(checkpoint, config.architecture, options, {"model."}, "embed_tokens.weight");
  builder.embeddings("embed_tokens");
  const std::vector<LayerKind>& layers = config.architecture.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    builder.begin_layer(static_cast<std::int64_t>(i));
    load_layer(builder, config, options.delta_rule, layers[i], "layers." + std::to_string(i));
  }
  builder.finish("norm", config.norm_eps, "lm_head", config.tie_word_embeddings);
  return builder.build();
}

}  // namespace replayeval
