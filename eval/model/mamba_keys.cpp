#include "eval/model/mamba_keys.h"

#include <limits>

namespace replayeval {

TimeStepLimit read_time_step_limit(ConfigReader& reader, const std::string& key) {
  const std::vector<double> limit = reader.numbers(key, {0.0, std::numeric_limits<double>::infinity()});
  if (limit.size() != 2 || limit[0] < 0.0 || limit[0] > limit[1]) reader.fail(key, "[min, max] with 0 <= min <= max");
  return {limit[0], limit[1]};
}

void check_mamba_sizes(const ConfigReader& reader, const MambaSizeKeys& keys, const mamba2::Shape& shape,
                       std::int64_t conv_kernel) {
  if (shape.head_dim % 8 != 0 || shape.head_dim > 128) reader.fail(keys.head_dim, "a multiple of 8 up to 128");
  if (shape.state_size % 8 != 0 || shape.state_size > 256) reader.fail(keys.state_size, "a multiple of 8 up to 256");
  if (shape.num_heads % shape.num_groups != 0)
    reader.fail(keys.num_groups, "a divisor of " + keys.num_heads + " (" + std::to_string(shape.num_heads) + ")");
  if (conv_kernel < 2 || conv_kernel > 8) reader.fail(keys.conv_kernel, "2 to 8");
}

NormGroupSize norm_of_each_group(const mamba2::Shape& shape) {
  const std::int64_t group = shape.num_heads * shape.head_dim / shape.num_groups;
  return {group, group};
}

NormGroupSize norm_of_each_group_in_training(const mamba2::Shape& shape) {
  return {norm_of_each_group(shape).published, shape.num_heads * shape.head_dim};
}

MambaKeys read_mamba_keys(ConfigReader& reader, Architecture& architecture) {
  MambaKeys keys;
  if (architecture.count(LayerKind::mamba2) == 0) {
    reader.ignore({"mamba_n_heads", "mamba_n_groups", "mamba_d_head", "mamba_d_state", "mamba_d_conv", "mamba_expand",
                   "mamba_conv_bias", "mamba_proj_bias", "mamba_chunk_size", "time_step_limit"});
    return keys;
  }
  mamba2::Shape& shape = keys.shape;
  shape.num_heads = reader.positive("mamba_n_heads");
  shape.num_groups = reader.positive("mamba_n_groups", 1);
  shape.state_size = reader.positive("mamba_d_state", 256);
  keys.conv_kernel = reader.positive("mamba_d_conv", 4);
  const std::int64_t inner = reader.positive("mamba_expand", 2) * architecture.hidden_size;
  const bool automatic = !reader.has("mamba_d_head") || reader.says("mamba_d_head", "auto");
  shape.head_dim = automatic ? inner / shape.num_heads : reader.positive("mamba_d_head");
  if (shape.num_heads * shape.head_dim != inner)
    reader.fail(automatic ? "mamba_n_heads" : "mamba_d_head",
                "mamba_n_heads * mamba_d_head = mamba_expand * hidden_size (" + std::to_string(inner) + ")");
  check_mamba_sizes(reader, {"mamba_n_heads", "mamba_n_groups", "mamba_d_head", "mamba_d_state", "mamba_d_conv"}, shape,
                    keys.conv_kernel);
  keys.conv_bias = reader.flag("mamba_conv_bias", true);
  keys.proj_bias = reader.flag("mamba_proj_bias", false);
  keys.time_step = read_time_step_limit(reader, "time_step_limit");
  reader.ignore({"mamba_chunk_size"});
  architecture.mamba = keys.shape;
  architecture.norm_group_size = norm_of_each_group_in_training(keys.shape);
  architecture.conv_kernel = keys.conv_kernel;
  return keys;
}

MambaForm form_of_keys(const MambaKeys& keys, const Architecture& architecture, double norm_eps, NormSpan span) {
  MambaForm form;
  form.use_bias = keys.proj_bias;
  form.use_conv_bias = keys.conv_bias;
  form.dt_min = static_cast<float>(keys.time_step.min);
  form.dt_max = static_cast<float>(keys.time_step.max);
  form.norm_group_size = architecture.norm_group_size.of(span);
  form.norm_eps = norm_eps;
  return form;
}

}  // namespace replayeval
