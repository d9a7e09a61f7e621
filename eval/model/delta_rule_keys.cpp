#include "eval/model/delta_rule_keys.h"

namespace replayeval {

void check_delta_sizes(const ConfigReader& reader, const DeltaSizeKeys& keys, const delta_rule::Shape& shape,
                       std::int64_t conv_kernel) {
  if (shape.key_dim % 8 != 0 || shape.key_dim > 256) reader.fail(keys.key_dim, "a multiple of 8 up to 256");
  if (shape.value_dim % 8 != 0 || shape.value_dim > 256) reader.fail(keys.value_dim, "a multiple of 8 up to 256");
  if (shape.num_value_heads % shape.num_key_heads != 0)
    reader.fail(keys.num_value_heads,
                "a multiple of " + keys.num_key_heads + " (" + std::to_string(shape.num_key_heads) + ")");
  if (conv_kernel < 2 || conv_kernel > 8) reader.fail(keys.conv_kernel, "2 to 8");
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
  check_delta_sizes(reader, keys, shape, architecture.conv_kernel);
}

}  // namespace replayeval
