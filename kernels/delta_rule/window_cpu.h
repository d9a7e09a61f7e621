// What a call gives the CPU's replay and reconstruct to read a window from.
#pragma once

#include "kernels/delta_rule/delta_rule.h"

#include <cstddef>

namespace replayeval::delta_rule {

struct WindowCall {
  Family family;
  const Shape& shape;
  const ReplayForm& form;
  const Block& block;
  const State& state;
  const Ring& ring;
};

// Floats of scratch a head's Window takes (window-inl.h).
inline std::size_t window_floats(const WindowCall& call) {
  const Shape& s = call.shape;
  const std::int64_t entry = 2 * s.value_dim + 2 * s.key_dim + gate_dim(call.family, s) + 1;
  return static_cast<std::size_t>(s.value_dim * s.key_dim + call.form.buffer_len * entry + 8 * s.key_dim +
                                  2 * s.value_dim);
}

}  // namespace replayeval::delta_rule
