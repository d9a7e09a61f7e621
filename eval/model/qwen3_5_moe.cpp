#include "eval/model/qwen3_5_moe.h"

#include "eval/model/qwen3_5.h"
#include "eval/model/qwen3_5_moe_config.h"

namespace replayeval {

Architecture describe_qwen3_5_moe(const Checkpoint& checkpoint) {
  return read_qwen3_5_moe_config(checkpoint).architecture;
}

std::unique_ptr<Model> load_qwen3_5_moe(const Checkpoint& checkpoint, const ModelOptions& options) {
  return load_wrapped_qwen(checkpoint, options, read_qwen3_5_moe_config(checkpoint));
}

}  // namespace replayeval
