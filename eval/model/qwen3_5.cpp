#include "eval/model/qwen3_5.h"

#include <string>

#include "eval/model/delta_rule_block.h"
#include "eval/model/qwen3_5_config.h"

namespace replayeval {
namespace {

Linear load_input(HybridBuilder& builder, const std::string& name) {
  const Architecture& architecture = builder.architecture();
  const std::int64_t hidden = architecture.hidden_size, heads = architecture.delta.num_value_heads;
  return stacked({builder.linear(name + ".in_proj_qkv", architecture.conv_dim(), hidden, false),
                  builder.linear(name + ".in_proj_z", heads * architecture.delta.value_dim, hidden, false),
                  builder.linear(name + ".in_proj_b", heads, hidden, false),
                  builder.linear(name + ".in_proj_a", heads, hidden, false)});
}

}  // namespace

Architecture describe_qwen3_5(const Checkpoint& checkpoint) { return read_qwen3_5_config(checkpoint).architecture; }

std::unique_ptr<Model> load_wrapped_qwen(const Checkpoint& checkpoint, const ModelOptions& options,
                                         const QwenHybridConfig& config) {
  return load_qwen_hybrid(checkpoint, options, config, {"model.language_model.", "model."}, &load_input);
}

std::unique_ptr<Model> load_qwen3_5(const Checkpoint& checkpoint, const ModelOptions& options) {
  return load_wrapped_qwen(checkpoint, options, read_qwen3_5_config(checkpoint));
}

}  // namespace replayeval
