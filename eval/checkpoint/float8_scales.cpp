#include "eval/checkpoint/float8_scales.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "eval/checkpoint/json_text.h"

namespace replayeval {
namespace {

using nlohmann::json;
using Shape = std::vector<std::int64_t>;

std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

Shape joined(Shape leading, const Shape& trailing) {
  leading.insert(leading.end(), trailing.begin(), trailing.end());
  return leading;
}

void read_block_size(const Checkpoint& checkpoint, ScaleForm& form) {
  const json& config = checkpoint.config();
  const auto quantization = config.find("quantization_config");
  if (quantization == config.end() || !quantization->is_object()) return;
  const auto size = quantization->find("weight_block_size");
  if (size == quantization->end() || size->is_null()) return;
  const auto fits = [](const json& value) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() - 1 < std::uint64_t{1} << 31;
  };
  if (!size->is_array() || size->size() != 2 || !std::all_of(size->begin(), size->end(), fits))
    throw CheckpointError(checkpoint.config_file().string() + ": quantization_config.weight_block_size is " +
                          show(*size) + "; expected [rows, columns]");
  form.rows = (*size)[0].get<std::int64_t>();
  form.columns = (*size)[1].get<std::int64_t>();
}

}  // namespace

const TensorView* find_scale(const Checkpoint& checkpoint, const std::string& tensor) {
  for (const char* ending : {"_scale_inv", "_scale"}) {
    const auto found = checkpoint.tensors().find(tensor + ending);
    if (found != checkpoint.tensors().end()) return &found->second;
  }
  return nullptr;
}

bool is_activation_scale(const std::string& tensor) {
  static constexpr std::array<std::string_view, 3> endings = {".input_scale", ".k_scale", ".v_scale"};
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return tensor.ends_with(ending); });
}

std::vector<std::string> activation_scales(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& [name, view] : checkpoint.tensors())
    if (is_activation_scale(name)) names.push_back(name);
  return names;
}

ScaleForm scale_form(const Checkpoint& checkpoint, const TensorView& weight, const TensorView& scale) {
  ScaleForm form;
  if (std::all_of(scale.shape.begin(), scale.shape.end(), [](std::int64_t size) { return size == 1; })) return form;
  if (weight.shape.size() < 2)
    throw CheckpointError(fmt::format("{}: tensor \"{}\" has shape [{}]; expected one scale for the vector \"{}\"",
                                      scale.file.string(), scale.name, fmt::join(scale.shape, ", "), weight.name));
  const Shape leading(weight.shape.begin(), weight.shape.end() - 2);
  const std::int64_t out = weight.shape[leading.size()], in = weight.shape.back();
  const auto is = [&](const Shape& trailing) { return scale.shape == joined(leading, trailing); };
  read_block_size(checkpoint, form);
  const Shape blocks = {ceil_div(out, form.rows), ceil_div(in, form.columns)};
  if (is({out}) || is({out, 1}))
    form.layout = ScaleLayout::channel;
  else if (is(blocks))
    form.layout = ScaleLayout::block;
  else if (!leading.empty() && (is({}) || is({1}) || is({1, 1})))
    form.layout = ScaleLayout::matrix;
  else
    throw CheckpointError(fmt::format(
        "{}: tensor \"{}\" has shape [{}]; expected one scale, one a row ([{}]) or one for each block of {} x {} "
        "([{}])",
        scale.file.string(), scale.name, fmt::join(scale.shape, ", "), fmt::join(joined(leading, {out, 1}), ", "),
        form.rows, form.columns, fmt::join(joined(leading, blocks), ", ")));
  return form;
}

}  // namespace replayeval
