#include "eval/model/qwen3_next.h"

#include <ATen/ATen.h>

#include <string>

#include "eval/model/qwen3_next_config.h"
#include "eval/model/qwen_hybrid.h"

namespace replayeval {
namespace {

// Each key head's rows stand together: in in_proj_qkvz its q, its k and the v and z of its value heads, in in_proj_ba
// their b and a.
Linear load_input(HybridBuilder& builder, const std::string& name) {
  const delta_rule::Shape& shape = builder.architecture().delta;
  const std::int64_t keys = shape.num_key_heads, hidden = builder.architecture().hidden_size;
  const std::int64_t group = shape.num_value_heads / keys, value = group * shape.value_dim;
  const auto by_key_head = [&](const std::string& leaf, std::int64_t rows) {
    return builder.linear(name + leaf, keys * rows, hidden, false).weight.view({keys, rows, hidden});
  };
  const at::Tensor qkvz = by_key_head(".in_proj_qkvz", 2 * shape.key_dim + 2 * value);
  const at::Tensor ba = by_key_head(".in_proj_ba", 2 * group);
  const auto rows = [&](const at::Tensor& heads, std::int64_t begin, std::int64_t count) {
    return heads.narrow(1, begin, count).reshape({keys * count, hidden});
  };
  return {at::cat({rows(qkvz, 0, shape.key_dim), rows(qkvz, shape.key_dim, shape.key_dim),
                   rows(qkvz, 2 * shape.key_dim, value), rows(qkvz, 2 * shape.key_dim + value, value),
                   rows(ba, 0, group), rows(ba, group, group)}),
          {}};
}

}  // namespace

Architecture describe_qwen3_next(const Checkpoint& checkpoint) {
  return read_qwen3_next_config(checkpoint).architecture;
}

std::unique_ptr<Model> load_qwen3_next(const Checkpoint& checkpoint, const ModelOptions& options) {
  return load_qwen_hybrid(checkpoint, options, read_qwen3_next_config(checkpoint), {"model."}, &load_input);
}

}  // namespace replayeval
