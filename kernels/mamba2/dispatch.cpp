// The public functions: check, then hand to the device's implementation.
#include "kernels/mamba2/arguments.h"
#include "kernels/mamba2/backends.h"
#include "kernels/run_on.h"

namespace replayeval::mamba2 {
void exact(const Device& device, const Shape& shape, const Block& block, const Inputs& in, const Parameters& parameters,
           const State& state, const Output& out) {
  check_device(device, "exact");
  check_exact(device, shape, block, in, parameters, state, out);
  run_on(
      device, [&] { cpu::exact(shape, block, in, parameters, state, out); },
      REPLAYEVAL_ON_CUDA(exact(device.stream, shape, block, in, parameters, state, out)));
}

void replay(const Device& device, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
            const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  check_device(device, "replay");
  check_replay(device, shape, form, block, in, parameters, state, ring, out);
  run_on(
      device, [&] { cpu::replay(shape, form, block, in, parameters, state, ring, out); },
      REPLAYEVAL_ON_CUDA(replay(device.stream, shape, form, block, in, parameters, state, ring, out)));
}

void advance_cursors(const Device& device, const Block& block, std::int64_t buffer_len, std::int32_t* cursor) {
  check_device(device, "advance_cursors");
  check_advance_cursors(block, buffer_len, cursor);
  run_on(
      device, [&] { cpu::advance_cursors(block, buffer_len, cursor); },
      REPLAYEVAL_ON_CUDA(advance_cursors(device.stream, block, buffer_len, cursor)));
}

void reconstruct(const Device& device, const Shape& shape, const ReplayForm& form, const Block& block,
                 const Parameters& parameters, const State& state, const Ring& ring, float* state_out) {
  check_device(device, "reconstruct");
  check_reconstruct(device, shape, form, block, parameters, state, ring, state_out);
  run_on(
      device, [&] { cpu::reconstruct(shape, form, block, parameters, state, ring, state_out); },
      REPLAYEVAL_ON_CUDA(reconstruct(device.stream, shape, form, block, parameters, state, ring, state_out)));
}

}  // namespace replayeval::mamba2
