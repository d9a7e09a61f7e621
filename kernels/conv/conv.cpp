// The public function: checks, then hands to the device's implementation.
#include "kernels/conv/conv.h"

#include "kernels/conv/backends.h"
#include "kernels/door.h"
#include "kernels/run_on.h"

#include <string>

namespace replayeval {
namespace {

void check(const Device& device, const DecodeBlock& block, const Conv& conv) {
  check_device(device, "causal_conv");
  const Door door("causal_conv");
  check_block(door, block);
  door.expect(conv.channels >= 1, "channels is " + std::to_string(conv.channels) + "; at least 1 is needed");
  door.expect(conv.conv_kernel >= 2 && conv.conv_kernel <= 8,
              "conv_kernel is " + std::to_string(conv.conv_kernel) + "; allowed: 2 to 8");
  door.present(conv.weight, "weight");
  door.present(conv.in, "in");
  door.present(conv.out, "out");
  door.present(conv.state, "state");
  door.dtype(conv.dtype, "dtype");
  door.stride(conv.in_stride, conv.channels, "in_stride");
  door.stride(conv.out_stride, conv.channels, "out_stride");
  check_slots(door, device, block, conv.slots);
}

}  // namespace

void causal_conv(const Device& device, const DecodeBlock& block, const Conv& conv) {
  check(device, block, conv);
  run_on(
      device, [&] { cpu::causal_conv(block, conv); }, REPLAYEVAL_ON_CUDA(causal_conv(device.stream, block, conv)));
}

}  // namespace replayeval
