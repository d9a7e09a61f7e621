// Gated DeltaNet's decode recurrence: the gated delta rule with one decay a value head,
//   g_t = -exp(A_log) softplus(f_t + dt_bias)          f: [.., num_value_heads]
// Promises, shapes and errors are those of kernels/delta_rule/delta_rule.h, where both families' arithmetic is.
#pragma once

#include "kernels/delta_rule/delta_rule.h"

namespace replayeval::gated_delta {

using delta_rule::Block;
using delta_rule::Flush;
using delta_rule::Gate;
using delta_rule::Inputs;
using delta_rule::Numerics;
using delta_rule::Output;
using delta_rule::Parameters;
using delta_rule::Precision;
using delta_rule::ReplayForm;
using delta_rule::Ring;
using delta_rule::RingForm;
using delta_rule::Route;
using delta_rule::Shape;
using delta_rule::State;

inline void exact(const Device& device, const Shape& shape, const Block& block, const Inputs& in,
                  const Parameters& parameters, const State& state, const Output& out) {
  delta_rule::exact(device, delta_rule::Family::gated_delta, shape, block, in, parameters, state, out);
}

inline void replay(const Device& device, const Shape& shape, const ReplayForm& form, const Block& block,
                   const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                   const Output& out) {
  delta_rule::replay(device, delta_rule::Family::gated_delta, shape, form, block, in, parameters, state, ring, out);
}

inline void advance_cursors(const Device& device, const Block& block, std::int64_t buffer_len, std::int32_t* cursor) {
  delta_rule::advance_cursors(device, delta_rule::Family::gated_delta, block, buffer_len, cursor);
}

inline void reconstruct(const Device& device, const Shape& shape, const ReplayForm& form, const Block& block,
                        const State& state, const Ring& ring, float* state_out) {
  delta_rule::reconstruct(device, delta_rule::Family::gated_delta, shape, form, block, state, ring, state_out);
}

}  // namespace replayeval::gated_delta
