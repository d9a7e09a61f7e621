// What a Mamba-2 model's gated norm takes its mean over where implementations disagree. It matters with several groups.
#pragma once

#include <cstdint>

namespace replayeval {

enum class NormSpan : std::uint8_t {
  published,     // as the kernels that the weights were trained with: each of the model's groups by itself
  transformers,  // as transformers' inference: the whole width, for the architectures where it does that
};

// Channels under one mean, by span. 0: the mixers only gate.
struct NormGroupSize {
  std::int64_t published = 0, transformers = 0;

  std::int64_t of(NormSpan span) const { return span == NormSpan::published ? published : transformers; }
};

}  // namespace replayeval
