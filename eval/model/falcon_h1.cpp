#include "eval/model/falcon_h1.h"

#include <string>
#include <utility>

#include "eval/model/falcon_h1_config.h"
#include "eval/model/falcon_h1_layer.h"
#include "eval/model/hybrid_builder.h"

namespace replayeval {
namespace {

GateForm gate_form(const FalconH1Config& config) {
  if (!config.mamba_rms_norm) return GateForm::gate_only;
  return config.mamba_norm_before_gate ? GateForm::norm_then_gate : GateForm::gate_then_norm;
}

MambaForm mamba_form(const FalconH1Config& config) {
  MambaForm form;
  form.use_bias = config.mamba_proj_bias;
  form.out_bias = config.projectors_bias;
  form.use_conv_bias = config.mamba_conv_bias;
  form.dt_min = static_cast<float>(config.time_step_limit.min);
  form.dt_max = static_cast<float>(config.time_step_limit.max);
  form.gate = gate_form(config);
  form.norm_group_size = norm_of_each_group(config.architecture.mamba).published;
  form.norm_eps = config.norm_eps;
  form.projection_multipliers = config.ssm_multipliers;
  return form;
}

AttentionForm attention_form(const FalconH1Config& config, const at::Device& device) {
  AttentionForm form;
  form.num_heads = config.architecture.num_heads;
  form.num_kv_heads = config.architecture.num_kv_heads;
  form.head_dim = config.architecture.head_dim;
  form.rotary = make_rotary(config.rotary, device);
  form.key_multiplier = config.key_multiplier;
  return form;
}

void add_layer(HybridBuilder& builder, const FalconH1Config& config, const std::string& name) {
  std::unique_ptr<Block> mamba = builder.mamba(name + ".mamba", mamba_form(config));
  std::unique_ptr<Block> attention = builder.attention(name + ".self_attn", attention_form(config, builder.device()),
                                                       config.attention_bias, config.attention_bias);
  builder.add(std::make_unique<ParallelLayer>(
      builder.norm(name + ".input_layernorm", config.norm_eps), std::move(mamba), std::move(attention),
      builder.compute_dtype(),
      ParallelMultipliers{config.ssm_in_multiplier, config.ssm_out_multiplier, config.attention_in_multiplier,
                          config.attention_out_multiplier}));
  const GatedMlpForm mlp{Activation::silu, config.mlp_multipliers[0], config.mlp_multipliers[1]};
  builder.add(name + ".pre_ff_layernorm", config.norm_eps,
              builder.gated_mlp(name + ".feed_forward", mlp, config.mlp_bias));
}

}  // namespace

Architecture describe_falcon_h1(const Checkpoint& checkpoint) { return read_falcon_h1_config(checkpoint).architecture; }

std::unique_ptr<Model> load_falcon_h1(const Checkpoint& checkpoint, const ModelOptions& options) {
  const FalconH1Config config = read_falcon_h1_config(checkpoint);
  HybridBuilder builder(checkpoint, config.architecture, options, {"model."}, "embed_tokens.weight");
  builder.embeddings("embed_tokens", config.embedding_multiplier);
  for (std::size_t i = 0; i < config.architecture.layers.size(); ++i) {
    builder.begin_layer(static_cast<std::int64_t>(i));
    add_layer(builder, config, "layers." + std::to_string(i));
  }
  builder.finish("final_layernorm", config.norm_eps, "lm_head", config.tie_word_embeddings, config.lm_head_multiplier);
  return builder.build();
}

}  // namespace replayeval
