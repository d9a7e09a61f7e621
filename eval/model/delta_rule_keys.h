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

// Throw CheckpointError naming the key of a size that the kernels do not have: heads of another width than a multiple
// of 8 up to 256, a convolution of fewer than 2 or more than 8 taps.
void check_delta_head_dim(const ConfigReader& reader, const std::string& key, std::int64_t head_dim);
void check_delta_conv_kernel(const ConfigReader& reader, const std::string& key, std::int64_t conv_kernel);

// Reads these sizes, each with the published code's default, into the architecture's delta and conv_kernel and checks
// them, value heads to be a multiple of key heads, too; ignores the keys in a model without delta-rule layers.
struct DeltaSizeDefaults {
  std::int64_t num_key_heads = 16, num_value_heads = 32, key_dim = 128, value_dim = 128, conv_kernel = 4;
};
void read_delta_sizes(ConfigReader& reader, const DeltaSizeDefaults& defaults, Architecture& architecture);

}  // namespace replayeval
