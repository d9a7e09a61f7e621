#include "eval/model/nemotron_h.h"

#include <limits>
#include <string>
#include <utility>

#include "eval/model/expert_weights.h"
#include "eval/model/hybrid_builder.h"
#include "eval/model/mixture_block.h"
#include "eval/model/nemotron_h_config.h"

namespace replayeval {
namespace {

MambaForm mamba_form(const NemotronHConfig& config, DtFloor floor) {
  const bool published = floor == DtFloor::published;
  MambaForm form;
  form.use_bias = config.use_bias;
  form.use_conv_bias = config.use_conv_bias;
  form.dt_min = static_cast<float>(published ? config.time_step_limit.min : config.time_step_min);
  form.dt_max = published ? static_cast<float>(config.time_step_limit.max) : std::numeric_limits<float>::infinity();
  form.norm_group_size = config.architecture.norm_group_size.published;
  form.norm_eps = config.norm_eps;
  return form;
}

AttentionForm attention_form(const Architecture& architecture) {
  AttentionForm form;
  form.num_heads = architecture.num_heads;
  form.num_kv_heads = architecture.num_kv_heads;
  form.head_dim = architecture.head_dim;
  return form;
}

std::unique_ptr<Block> load_mlp(HybridBuilder& builder, const std::string& name, std::int64_t inner, bool bias) {
  const std::int64_t hidden = builder.architecture().hidden_size;
  MlpWeights dense;
  dense.up_proj = builder.linear(name + ".up_proj", inner, hidden, bias);
  dense.down_proj = builder.linear(name + ".down_proj", hidden, inner, bias);
  return std::make_unique<SquaredReluMlpBlock>(std::move(dense));
}

Router load_router(HybridBuilder& builder, const std::string& name, const RouterForm& form) {
  const std::int64_t experts = builder.architecture().mixture.experts;
  // Logits are float32 in the published code, whatever the compute dtype.
  return {builder.weights().load(name + ".weight", {experts, builder.architecture().hidden_size}, at::kFloat),
          builder.weights().load(name + ".e_score_correction_bias", {experts}, at::kFloat), form};
}

std::unique_ptr<Block> load_mixture(HybridBuilder& builder, const NemotronHConfig& config, const std::string& name) {
  const MixtureShape& shape = config.architecture.mixture;
  const std::int64_t hidden = config.architecture.hidden_size;
  const std::int64_t width = shape.latent_size == 0 ? hidden : shape.latent_size;
  MixtureParts parts;
  parts.router = load_router(builder, name + ".gate", config.router);
  const auto experts = [&](const std::string& projection, std::int64_t out, std::int64_t in) {
    const std::string all = name + ".experts";
    return load_experts(builder, {{all + "." + projection}, all, {projection + ".weight"}}, shape.experts, out, in);
  };
  parts.experts.form = ExpertForm::squared_relu;
  parts.experts.up = experts("up_proj", shape.intermediate_size, width);
  parts.experts.down = experts("down_proj", width, shape.intermediate_size);
  if (shape.latent_size != 0) {
    parts.latent_in = builder.linear(name + ".fc1_latent_proj", width, hidden, config.mlp_bias);
    parts.latent_out = builder.linear(name + ".fc2_latent_proj", hidden, width, config.mlp_bias);
  }
  parts.shared = load_mlp(builder, name + ".shared_experts", shape.shared_intermediate_size, config.mlp_bias);
  return std::make_unique<MixtureBlock>(std::move(parts));
}

std::unique_ptr<Block> load_block(HybridBuilder& builder, const NemotronHConfig& config, DtFloor floor, LayerKind kind,
                                  const std::string& name) {
  switch (kind) {
    case LayerKind::mamba2:
      return builder.mamba(name, mamba_form(config, floor));
    case LayerKind::attention:
      return builder.attention(name, attention_form(config.architecture), false, false);
    case LayerKind::moe:
      return load_mixture(builder, config, name);
    case LayerKind::gated_delta:  // not in this architecture, like the next two
    case LayerKind::kda:
    case LayerKind::mamba2_attention:
    case LayerKind::mlp:
      break;
  }
  return load_mlp(builder, name, config.architecture.intermediate_size, config.mlp_bias);
}

}  // namespace

Architecture describe_nemotron_h(const Checkpoint& checkpoint) {
  return read_nemotron_h_config(checkpoint).architecture;
}

std::unique_ptr<Model> load_nemotron_h(const Checkpoint& checkpoint, const ModelOptions& options) {
  const NemotronHConfig config = read_nemotron_h_config(checkpoint);
  // `backbone.` is how the folders are published and what transformers saves; `model.` is its name inside transformers.
  HybridBuilder builder(checkpoint, config.architecture, options, {"backbone.", "model."}, "embeddings.weight");
  builder.embeddings("embeddings");
  const std::vector<LayerKind>& layers = config.architecture.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = "layers." + std::to_string(i);
    builder.begin_layer(static_cast<std::int64_t>(i));
    std::unique_ptr<Block> block = load_block(builder, config, options.dt_floor, layers[i], name + ".mixer");
    builder.add(name + ".norm", config.norm_eps, std::move(block), {1.0, config.residual_in_fp32});
  }
  builder.finish("norm_f", config.norm_eps, "lm_head", config.tie_word_embeddings);
  return builder.build({"mtp."});  // multi-token prediction heads are not part of the model proper
}

}  // namespace replayeval
