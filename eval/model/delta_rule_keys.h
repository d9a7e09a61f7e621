// The keys of delta-rule mixers in config.json.
#pragma once

#include <string>

#include "eval/model/architecture.h"
#include "eval/model/config_reader.h"

namespace replayeval {

// Names of the sizes of a mixer, as they stand in config.json.
struct DeltaSizeKeys {
  std::string num_key_heads = "linear_num_key_heads", num_value_heads = "linear_num_value_heads";
  std::string key_dim = "linear_key_head_dim", value_dim = "linear_value_head_dim";
  std::string conv_kernel = "linear_conv_kernel_dim";
};

// Throws CheckpointError naming the key of the first size that the kernels do not have: key_dim and value_dim multiples
// of 8 up to 256, value heads a multiple of key heads, a convolution of 2 to 8 taps.
void check_delta_sizes(const ConfigReader& reader, const DeltaSizeKeys& keys, const delta_rule::Shape& shape,
                       std::int64_t conv_kernel);

// Reads these sizes, each with the published code's default, into the architecture's delta and conv_kernel and checks
// them; ignores the keys in a model without delta-rule layers.
struct DeltaSizeDefaults {
  std::int64_t num_key_heads = 16, num_value_heads = 32, key_dim = 128, value_dim = 128, conv_kernel = 4;
};
void read_delta_sizes(ConfigReader& reader, const DeltaSizeDefaults& defaults, Architecture& architecture);

}  // namespace replayeval
