#include "eval/model/architecture.h"

#include <algorithm>
#include <map>

namespace replayeval {

std::string_view layer_kind_name(LayerKind kind) {
  switch (kind) {
    case LayerKind::mamba2:
      return "mamba2";
    case LayerKind::gated_delta:
      return "gated_delta";
    case LayerKind::kda:
      return "kda";
    case LayerKind::attention:
      return "attention";
    case LayerKind::mlp:
      return "mlp";
    case LayerKind::mamba2_attention:
      return "mamba2+attention";
    case LayerKind::moe:
      break;
  }
  return "moe";
}

std::int64_t Architecture::count(LayerKind kind) const {
  const bool in_both = kind == LayerKind::mamba2 || kind == LayerKind::attention;
  return std::count_if(layers.begin(), layers.end(), [=](LayerKind layer) {
    return layer == kind || (in_both && layer == LayerKind::mamba2_attention);
  });
}

std::int64_t Architecture::state_space_layers() const {
  return count(LayerKind::mamba2) + count(LayerKind::gated_delta) + count(LayerKind::kda);
}

delta_rule::Family Architecture::delta_family() const {
  return count(LayerKind::kda) != 0 ? delta_rule::Family::kda : delta_rule::Family::gated_delta;
}

RingForm Architecture::published_ring_form() const { return has_delta_rule() ? RingForm::deltas : RingForm::inputs; }

std::int64_t Architecture::conv_dim() const {
  if (has_delta_rule()) return 2 * delta.num_key_heads * delta.key_dim + delta.num_value_heads * delta.value_dim;
  return mamba.num_heads * mamba.head_dim + 2 * mamba.num_groups * mamba.state_size;
}

Dtype stored_dtype(const Checkpoint& checkpoint) {
  std::map<std::string, std::size_t> bytes;
  for (const auto& [name, tensor] : checkpoint.tensors())
    if (tensor.dtype != "F8_E4M3") bytes[tensor.dtype] += tensor.bytes.size();
  const auto said = [](const nlohmann::json& config, const char* key, Dtype type) {
    return config.contains(key) && config.at(key) == std::string(dtype_name(type));
  };
  const nlohmann::json& whole = checkpoint.config();
  const nlohmann::json& text = whole.contains("text_config") ? whole.at("text_config") : whole;  // where it is wrapped
  if (bytes.empty())
    for (const char* key : {"dtype", "torch_dtype"})
      for (const Dtype type : {Dtype::bfloat16, Dtype::float16, Dtype::float32})
        if (said(whole, key, type) || said(text, key, type)) return type;
  if (bytes.empty()) return Dtype::float32;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->first == "BF16") return Dtype::bfloat16;
  return most->first == "F16" ? Dtype::float16 : Dtype::float32;
}

}  // namespace replayeval
