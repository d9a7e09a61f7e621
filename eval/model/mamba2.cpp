#include "eval/model/mamba2.h"

#include <string>
#include <utility>

#include "eval/model/hybrid_builder.h"
#include "eval/model/mamba2_config.h"

namespace replayeval {
namespace {

MambaForm mamba_form(const Mamba2Config& config, NormSpan span) {
  MambaForm form;
  form.use_bias = config.use_bias;
  form.use_conv_bias = config.use_conv_bias;
  form.dt_min = static_cast<float>(config.time_step_limit.min);
  form.dt_max = static_cast<float>(config.time_step_limit.max);
  form.norm_group_size = config.architecture.norm_group_size.of(span);
  form.norm_eps = config.norm_eps;
  return form;
}

}  // namespace

Architecture describe_mamba2(const Checkpoint& checkpoint) { return read_mamba2_config(checkpoint).architecture; }

std::unique_ptr<Model> load_mamba2(const Checkpoint& checkpoint, const ModelOptions& options) {
  const Mamba2Config config = read_mamba2_config(checkpoint);
  // transformers saves `backbone.`, Mistral's own files say `model.backbone.`; the embeddings go by either of two
  // names.
  HybridBuilder builder(checkpoint, config.architecture, options, {"backbone.", "model.backbone."},
                        "layers.0.norm.weight");
  const WeightLoader& weights = builder.weights();
  const bool singular =
      weights.has_unprefixed("backbone.embedding.weight") || weights.has_unprefixed("model.backbone.embedding.weight");
  builder.embeddings(singular ? "embedding" : "embeddings");
  for (std::size_t i = 0; i < config.architecture.layers.size(); ++i) {
    const std::string name = "layers." + std::to_string(i);
    builder.begin_layer(static_cast<std::int64_t>(i));
    std::unique_ptr<Block> block = builder.mamba(name + ".mixer", mamba_form(config, options.norm_span));
    builder.add(name + ".norm", config.norm_eps, std::move(block), {1.0, config.residual_in_fp32});
  }
  const bool behind_model = weights.has_unprefixed("model.lm_head.weight");
  builder.finish("norm_f", config.norm_eps, behind_model ? "model.lm_head" : "lm_head", config.tie_word_embeddings);
  return builder.build();
}

}  // namespace replayeval
