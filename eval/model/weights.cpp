#include "eval/model/weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "eval/checkpoint/float8_scales.h"
#include "eval/model/random_weights.h"
#include "eval/model/weight_reader.h"

namespace replayeval {
namespace {

// Of routed experts, one tensor each or stacked; not of routers and shared experts.
bool belongs_to_experts(const std::string& name) {
  static constexpr std::array<const char*, 3> parts = {".experts.", ".block_sparse_moe.input_linear.",
                                                       ".block_sparse_moe.output_linear."};
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return name.find(part) != std::string::npos; });
}

// Of one tensor: far above any that exists, and so low that no sum over a model's tensors overflows.
constexpr std::int64_t most_elements = std::int64_t{1} << 40;

bool is_possible(const std::vector<std::int64_t>& shape) {
  std::int64_t most = most_elements;
  for (const std::int64_t size : shape) most /= std::max<std::int64_t>(size, 1);
  return most > 0;
}

}  // namespace

WeightLoader::WeightLoader(const Checkpoint& checkpoint, at::Device device, const std::vector<std::string>& prefixes,
                           const std::string& probe, std::optional<std::uint64_t> random_seed)
    : checkpoint_(checkpoint), device_(device), seed_(random_seed), prefix_(prefixes.front()) {
  if (!checkpoint.has_weights()) {
    if (!seed_ && !device.is_meta())
      throw CheckpointError(checkpoint.folder().string() +
                            ": opened without its weights; expected them, or a seed for random ones");
    return;
  }
  const auto holds_probe = [&](const std::string& prefix) { return checkpoint.tensors().contains(prefix + probe); };
  const auto found = std::find_if(prefixes.begin(), prefixes.end(), holds_probe);
  if (found != prefixes.end())
    prefix_ = *found;
  else if (looks_up())
    checkpoint.tensor(prefix_ + probe);  // throws: missing
}

at::Tensor WeightLoader::load(const std::string& name, const std::vector<std::int64_t>& shape, at::ScalarType type) {
  return load_unprefixed(prefix_ + name, shape, type);
}

at::Tensor WeightLoader::load_unprefixed(const std::string& name, const std::vector<std::int64_t>& shape,
                                         at::ScalarType type) {
  require_shape(name, shape);
  at::Tensor weight = at::empty(shape, at::TensorOptions().device(device_).dtype(type));
  fill(name, weight);
  return weight;
}

void WeightLoader::load_into(const std::string& name, const at::Tensor& destination) {
  fill(prefix_ + name, destination);
}

at::Tensor WeightLoader::load_joined(const std::vector<std::string>& names, const std::vector<std::int64_t>& shape,
                                     at::ScalarType type) {
  at::Tensor all = at::empty(shape, at::TensorOptions().device(device_).dtype(type));
  std::int64_t begin = 0;
  for (const std::string& name : names) {
    const std::int64_t left = shape[0] - begin;
    std::int64_t rows = left;  // of the last one, whose shape is wrong if the sum is
    if (&name != &names.back()) {
      const bool stored = looks_up() && has(name) && !checkpoint_.tensor(prefix_ + name).shape.empty();
      const std::int64_t even = shape[0] / static_cast<std::int64_t>(names.size());
      rows = std::min(left, stored ? checkpoint_.tensor(prefix_ + name).shape[0] : even);
    }
    load_into(name, all.narrow(0, begin, rows));
    begin += rows;
  }
  return all;
}

// Before memory is asked for: an impossible size in config.json shall be named as such.
void WeightLoader::require_shape(const std::string& name, const std::vector<std::int64_t>& shape) const {
  if (looks_up()) {
    const TensorView& view = checkpoint_.tensor(name);
    if (shape != view.shape)
      throw CheckpointError(fmt::format("{} has shape [{}]; expected [{}] by config.json", place_of(view),
                                        fmt::join(view.shape, ", "), fmt::join(shape, ", ")));
  } else if (!is_possible(shape)) {
    throw CheckpointError(fmt::format("{}: tensor \"{}\" would have shape [{}]; expected at most {} elements",
                                      checkpoint_.config_file().string(), name, fmt::join(shape, ", "), most_elements));
  }
}

void WeightLoader::fill(const std::string& name, const at::Tensor& destination) {
  if (looks_up()) {
    require_shape(name, destination.sizes().vec());
    const TensorView& view = checkpoint_.tensor(name);
    const TensorView* scale = find_scale(checkpoint_, name);
    read_weight(checkpoint_, view, scale, destination, transfer_to(destination.device()));
    if (scale != nullptr) loaded_.insert(scale->name);
  } else if (!destination.is_meta() && seed_) {
    fill_random(destination, name, *seed_);
  }
  if (!loaded_.insert(name).second) return;
  parameter_count_ += destination.numel();
  byte_count_ += static_cast<std::int64_t>(destination.nbytes());
  if (!belongs_to_experts(name)) return;
  expert_parameter_count_ += destination.numel();
  expert_byte_count_ += static_cast<std::int64_t>(destination.nbytes());
}

bool WeightLoader::has(const std::string& name, bool otherwise) const {
  return has_unprefixed(prefix_ + name, otherwise);
}

bool WeightLoader::has_unprefixed(const std::string& name, bool otherwise) const {
  return seed_ || !checkpoint_.has_weights() ? otherwise : checkpoint_.tensors().contains(name);
}

std::string WeightLoader::stored_name(const std::vector<std::string>& names, const std::string& leaf) const {
  const auto found = std::find_if(names.begin(), names.end(), [&](const auto& name) { return has(name + leaf); });
  return found == names.end() ? names.front() : *found;
}

void WeightLoader::finish(const std::vector<std::string>& skipped) const {
  if (!looks_up()) return;
  for (const auto& [name, view] : checkpoint_.tensors()) {
    const auto begins = [&tensor = name](const std::string& prefix) { return tensor.starts_with(prefix); };
    if (!loaded_.contains(name) && !is_activation_scale(name) && std::none_of(skipped.begin(), skipped.end(), begins))
      throw CheckpointError(place_of(view) +
                            " has no place in this architecture; expected only tensors that config.json implies");
  }
}

}  // namespace replayeval
