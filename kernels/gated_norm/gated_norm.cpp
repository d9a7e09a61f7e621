// The public function: checks, then hands to the device's implementation.
#include "kernels/gated_norm/gated_norm.h"

#include "kernels/door.h"
#include "kernels/gated_norm/backends.h"
#include "kernels/run_on.h"

#include <cmath>
#include <string>

namespace replayeval {
namespace {

void check(const Device& device, const GatedNorm& norm) {
  check_device(device, "gated_norm");
  const Door door("gated_norm");
  door.expect(norm.rows >= 1, "rows is " + std::to_string(norm.rows) + "; at least 1 is needed");
  door.expect(norm.group_size >= 1, "group_size is " + std::to_string(norm.group_size) + "; at least 1 is needed");
  door.expect(norm.width >= 1 && norm.width % norm.group_size == 0, "width " + std::to_string(norm.width) +
                                                                        " must be a multiple of group_size, which is " +
                                                                        std::to_string(norm.group_size));
  door.expect(norm.eps >= 0.0F && std::isfinite(norm.eps), "eps is " + std::to_string(norm.eps) + "; needed: eps >= 0");
  if (norm.form != GateForm::gate_only) door.present(norm.weight, "weight");
  door.present(norm.y, "y");
  door.present(norm.z, "z");
  door.present(norm.out, "out");
  door.dtype(norm.y_dtype, "y_dtype");
  door.dtype(norm.dtype, "dtype");
  door.stride(norm.y_stride, norm.width, "y_stride");
  door.stride(norm.z_stride, norm.width, "z_stride");
  door.stride(norm.out_stride, norm.width, "out_stride");
}

}  // namespace

void gated_norm(const Device& device, const GatedNorm& norm) {
  check(device, norm);
  run_on(
      device, [&] { cpu::gated_norm(norm); }, REPLAYEVAL_ON_CUDA(gated_norm(device.stream, norm)));
}

}  // namespace replayeval
