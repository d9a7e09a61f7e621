// The public functions: check, then hand to the device's implementation.
#include "kernels/delta_rule/arguments.h"
#include "kernels/delta_rule/backends.h"
#include "kernels/run_on.h"

namespace replayeval::delta_rule {

void exact(const Device& device, Family family, const Shape& shape, const Block& block, const Inputs& in,
           const Parameters& parameters, const State& state, const Output& out) {
  check_exact(device, family, shape, block, in, parameters, state, out);
  run_on(
      device, [&] { cpu::exact(family, shape, block, in, parameters, state, out); },
      REPLAYEVAL_ON_CUDA(exact(device.stream, family, shape, block, in, parameters, state, out)));
}

void replay(const Device& device, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
            const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  check_replay(device, family, shape, form, block, in, parameters, state, ring, out);
  run_on(
      device, [&] { cpu::replay(family, shape, form, block, in, parameters, state, ring, out); },
      REPLAYEVAL_ON_CUDA(replay(device.stream, family, shape, form, block, in, parameters, state, ring, out)));
}

void advance_cursors(const Device& device, Family family, const Block& block, std::int64_t buffer_len,
                     std::int32_t* cursor) {
  check_advance_cursors(device, family, block, buffer_len, cursor);
  run_on(
      device, [&] { cpu::advance_cursors(block, buffer_len, cursor); },
      REPLAYEVAL_ON_CUDA(advance_cursors(device.stream, block, buffer_len, cursor)));
}

void reconstruct(const Device& device, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                 const State& state, const Ring& ring, float* state_out) {
  check_reconstruct(device, family, shape, form, block, state, ring, state_out);
  run_on(
      device, [&] { cpu::reconstruct(family, shape, form, block, state, ring, state_out); },
      REPLAYEVAL_ON_CUDA(reconstruct(device.stream, family, shape, form, block, state, ring, state_out)));
}

}  // namespace replayeval::delta_rule
