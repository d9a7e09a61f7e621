#include "eval/model/bamba.h"

#include <string>
#include <utility>

#include "eval/model/bamba_config.h"
#include "eval/model/hybrid_builder.h"

namespace replayeval {
namespace {

std::unique_ptr<Block> load_attention(HybridBuilder& builder, const BambaConfig& config, const std::string& name) {
  const Architecture& architecture = config.architecture;
  AttentionForm form;
  form.num_heads = architecture.num_heads;
  form.num_kv_heads = architecture.num_kv_heads;
  form.head_dim = architecture.head_dim;
  form.rotary = make_rotary(config.rotary, builder.device());
  return builder.attention(name, form, config.attention_bias, config.attention_bias);
}

std::unique_ptr<Block> load_mamba(HybridBuilder& builder, const BambaConfig& config, NormSpan span,
                                  const std::string& name) {
  return builder.mamba(name, form_of_keys(config.mamba, config.architecture, config.norm_eps, span));
}

void load_layer(HybridBuilder& builder, const BambaConfig& config, LayerKind kind, NormSpan span,
                const std::string& name) {
  std::unique_ptr<Block> mixer = kind == LayerKind::attention ? load_attention(builder, config, name + ".self_attn")
                                                              : load_mamba(builder, config, span, name + ".mamba");
  builder.add(name + ".input_layernorm", config.norm_eps, std::move(mixer));
  builder.add(name + ".pre_ff_layernorm", config.norm_eps,
              builder.gated_mlp(name + ".feed_forward", GatedMlpForm{}, config.mlp_bias));
}

}  // namespace

Architecture describe_bamba(const Checkpoint& checkpoint) { return read_bamba_config(checkpoint).architecture; }

std::unique_ptr<Model> load_bamba(const Checkpoint& checkpoint, const ModelOptions& options) {
  const BambaConfig config = read_bamba_config(checkpoint);
  HybridBuilder builder(checkpoint, config.architecture, options, {"model."}, "embed_tokens.weight");
  builder.embeddings("embed_tokens");
  const std::vector<LayerKind>& layers = config.architecture.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    builder.begin_layer(static_cast<std::int64_t>(i));
    load_layer(builder, config, layers[i], options.norm_span, "layers." + std::to_string(i));
  }
  builder.finish("final_layernorm", config.norm_eps, "lm_head", config.tie_word_embeddings);
  return builder.build();
}

}  // namespace replayeval
