// The activations of MLPs, by the names that config.json gives them.
#pragma once

#include <cstdint>
#include <string>

#include "eval/model/config_reader.h"

namespace replayeval {

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu };

// silu or swish; gelu; gelu_new, gelu_fast or gelu_pytorch_tanh (one function); relu. Throws CheckpointError on others.
Activation read_activation(ConfigReader& reader, const std::string& key, const std::string& fallback);

}  // namespace replayeval
