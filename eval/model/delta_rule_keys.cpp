#include "eval/model/delta_rule_keys.h"

namespace replayeval {

void check_delta_head_dim(const ConfigReader& reader, const std::string& key, std::int64_t head_dim) {
  if (head_dim % 8 != 0 || head_dim > 256) reader.fail(key, "a multiple of 8 up to 256");
}

void check_delta_conv_kernel(const ConfigReader& reader, const std::string& key, std::int64_t conv_kernel) {
  if (conv_kernel < 2 || conv_kernel > 8) reader.fail(key, "2 to 8");
}

void read_delta_sizes(ConfigReader& reader, const DeltaSizeDefaults& defaults, Architecture& architecture) {
  const DeltaSizeKeys keys;
  if (!architecture.has_delta_rule()) {
    reader.ignore({keys.num_key_heads, keys.num_value_heads, keys.key_dim, keys.value_dim, keys.conv_kernel});
    return;
  }
  delta_rule::Shape& shape = architecture.delta;
  shape.num_key_heads = reader.positive(keys.num_key_heads, defaults.num_key_heads);
  shape.num_value_heads = reader.positive(keys.num_value_heads, defaults.num_value_heads);
  shape.key_dim = reader.positive(keys.key_dim, defaults.key_dim);
  shape.value_dim = reader.positive(keys.value_dim, defaults.value_dim);
  architecture.conv_kernel = reader.positive(keys.conv_kernel, defaults.conv_kernel);
  check_delta_head_dim(reader, keys.key_dim, shape.key_dim);
  check_delta_head_dim(reader, keys.value_dim, shape.value_dim);
  if (shape.num_value_heads % shape.num_key_heads != 0)
    reader.fail(keys.num_value_heads,
                "a multiple of " + keys.num_key_heads + " (" + std::to_string(shape.num_key_heads) + ")");
  check_delta_conv_kernel(reader, keys.conv_kernel, architecture.conv_kernel);
}

}  // namespace replayeval
