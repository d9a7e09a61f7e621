// What a Mamba-2 model's gated norm takes its mean over where implementations disagree. It matters with several groups.
#pragma once

#include <cstdint>

namespace replayeval {

enum class NormSpan : std::uint8_t {
  published,     // as the code that the weights were trained with: each of the model's groups by itself
  transformers,  // as transformers: the whole width, for the architectures where it does that
};

}  // namespace replayeval
