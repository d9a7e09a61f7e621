#include "eval/model/weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

namespace replayeval {
namespace {

std::string place(const TensorView& view) { return view.file.string() + ": tensor \"" + view.name + "\""; }

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

at::ScalarType stored_type(const TensorView& view) {
  if (view.dtype == "F32") return at::kFloat;
  if (view.dtype == "BF16") return at::kBFloat16;
  if (view.dtype == "F16") return at::kHalf;
  throw CheckpointError(place(view) + " has dtype " + view.dtype + "; expected F32, BF16 or F16");
}

// Row-major indices of the first element that is not finite, "[3, 17]"; "" if all are.
std::string first_non_finite(const at::Tensor& tensor) {
  const at::Tensor finite = at::isfinite(tensor);
  if (finite.all().item<bool>()) return "";
  const std::int64_t flat = at::logical_not(finite).flatten().to(at::kByte).argmax().item<std::int64_t>();
  std::vector<std::int64_t> index(static_cast<std::size_t>(tensor.dim()));
  std::int64_t rest = flat;
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = rest % tensor.size(static_cast<std::int64_t>(d));
    rest /= tensor.size(static_cast<std::int64_t>(d));
  }
  return shape_text(index);
}

void check_finite(const TensorView& view, const at::Tensor& stored, const at::Tensor& converted) {
  const std::string index = first_non_finite(converted);
  if (index.empty()) return;
  if (const std::string there = first_non_finite(stored); !there.empty())
    throw CheckpointError(place(view) + " holds a NaN or infinity, first at " + there + "; expected finite weights");
  throw CheckpointError(place(view) + " does not fit " + std::string(c10::toString(converted.scalar_type())) +
                        ": infinite at " + index + " after conversion; expected another compute dtype");
}

}  // namespace

WeightLoader::WeightLoader(const Checkpoint& checkpoint, at::Device device, const std::vector<std::string>& prefixes,
                           const std::string& probe)
    : checkpoint_(checkpoint), device_(device) {
  const auto holds_probe = [&](const std::string& prefix) { return checkpoint.tensors().contains(prefix + probe); };
  const auto found = std::find_if(prefixes.begin(), prefixes.end(), holds_probe);
  prefix_ = found == prefixes.end() ? prefixes.front() : *found;
  if (found == prefixes.end()) checkpoint.tensor(prefix_ + probe);  // throws: missing
}

at::Tensor WeightLoader::load(const std::string& name, const std::vector<std::int64_t>& shape, at::ScalarType type) {
  return load_unprefixed(prefix_ + name, shape, type);
}

at::Tensor WeightLoader::load_unprefixed(const std::string& name, const std::vector<std::int64_t>& shape,
                                         at::ScalarType type) {
  const TensorView& view = checkpoint_.tensor(name);
  if (view.shape != shape)
    throw CheckpointError(place(view) + " has shape " + shape_text(view.shape) + "; expected " + shape_text(shape) +
                          " by config.json");
  // A copy first: the format does not promise that a tensor's bytes are aligned for its type.
  at::Tensor stored = at::empty(shape, at::TensorOptions().dtype(stored_type(view)));
  if (!view.bytes.empty()) std::memcpy(stored.data_ptr(), view.bytes.data(), view.bytes.size());
  at::Tensor converted = stored.to(at::TensorOptions().device(device_).dtype(type));
  check_finite(view, stored, converted);
  if (loaded_.insert(name).second) parameter_count_ += converted.numel();
  return converted;
}

bool WeightLoader::has_unprefixed(const std::string& name) const { return checkpoint_.tensors().contains(name); }

void WeightLoader::finish(const std::vector<std::string>& skipped) const {
  for (const auto& entry : checkpoint_.tensors()) {
    const auto begins = [&entry](const std::string& prefix) { return entry.first.starts_with(prefix); };
    if (!loaded_.contains(entry.first) && std::none_of(skipped.begin(), skipped.end(), begins))
      throw CheckpointError(place(entry.second) +
                            " has no place in this architecture; expected only tensors that config.json implies");
  }
}

}  // namespace replayeval
