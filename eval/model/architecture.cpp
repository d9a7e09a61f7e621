#include "eval/model/architecture.h"

#include <algorithm>
#include <map>

namespace replayeval {

std::string_view layer_kind_name(LayerKind kind) {
  switch (kind) {
    case LayerKind::mamba2:
      return "mamba2";
    case LayerKind::attention:
      return "attention";
    case LayerKind::mlp:
      return "mlp";
    case LayerKind::moe:
      break;
  }
  return "moe";
}

std::int64_t Architecture::count(LayerKind kind) const { return std::count(layers.begin(), layers.end(), kind); }

std::int64_t Architecture::conv_dim() const {
  return mamba.num_heads * mamba.head_dim + 2 * mamba.num_groups * mamba.state_size;
}

Dtype stored_dtype(const Checkpoint& checkpoint) {
  std::map<std::string, std::size_t> bytes;
  for (const auto& [name, tensor] : checkpoint.tensors()) bytes[tensor.dtype] += tensor.bytes.size();
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->first == "BF16") return Dtype::bfloat16;
  return most->first == "F16" ? Dtype::float16 : Dtype::float32;
}

}  // namespace replayeval
