// Checks at the door of the delta rule's kernels. Each throws std::invalid_argument with what was given and what is
// allowed; messages begin with the family's function, "gated_delta::exact".
#pragma once

#include "kernels/delta_rule/delta_rule.h"

namespace replayeval::delta_rule {

void check_exact(const Device&, Family, const Shape&, const Block&, const Inputs&, const Parameters&, const State&,
                 const Output&);
void check_replay(const Device&, Family, const Shape&, const ReplayForm&, const Block&, const Inputs&,
                  const Parameters&, const State&, const Ring&, const Output&);
void check_reconstruct(const Device&, Family, const Shape&, const ReplayForm&, const Block&, const State&, const Ring&,
                       const float* state_out);
void check_advance_cursors(const Device&, Family, const Block&, std::int64_t buffer_len, const std::int32_t* cursor);

}  // namespace replayeval::delta_rule
