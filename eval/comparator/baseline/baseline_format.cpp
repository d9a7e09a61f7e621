#include "eval/comparator/baseline/baseline_format.h"

namespace replayeval {
namespace {

const char* safetensors_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return "F32";
    case Dtype::bfloat16:
      return "BF16";
    case Dtype::float16:
      return "F16";
  }
  return "";
}

}  // namespace

std::string_view baseline_form_name(BaselineForm form) { return form == BaselineForm::hidden ? "hidden" : "log_probs"; }

std::optional<BaselineForm> parse_baseline_form(std::string_view name) {
  for (const BaselineForm form : {BaselineForm::hidden, BaselineForm::log_probs})
    if (baseline_form_name(form) == name) return form;
  return std::nullopt;
}

std::string baseline_file(const std::string& workload) { return workload + ".safetensors"; }

std::vector<TensorLayout> baseline_tensors(const BaselineSizes& sizes) {
  namespace names = baseline_names;
  std::vector<TensorLayout> tensors = {{names::index, "I64", {sizes.tokens, 4}},
                                       {names::log_probs, "F64", {sizes.tokens, sizes.arms}}};
  if (sizes.hidden)
    tensors.push_back({names::hidden, safetensors_dtype(*sizes.hidden), {sizes.tokens, sizes.arms, sizes.hidden_size}});
  return tensors;
}

std::uint64_t baseline_bytes(const BaselineSizes& sizes) {
  std::uint64_t bytes = 0;
  for (const TensorLayout& tensor : baseline_tensors(sizes)) bytes += tensor.bytes();
  return bytes;
}

}  // namespace replayeval
