#include "kernels/mamba2/arguments.h"

#include "kernels/mamba2/scalars.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace replayeval::mamba2 {
namespace {

// Messages begin with the public function's name.
class Door {
 public:
  explicit Door(const char* function) : function_(function) {}

  [[noreturn]] void refuse(const std::string& message) const {
    throw std::invalid_argument("mamba2::" + std::string(function_) + ": " + message);
  }
  void expect(bool holds, const std::string& message) const {
    if (!holds) refuse(message);
  }
  void present(const void* pointer, const char* name) const {
    if (pointer == nullptr) refuse(std::string(name) + " is null");
  }
  void aligned(const void* pointer, const char* name) const {
    present(pointer, name);
    if (reinterpret_cast<std::uintptr_t>(pointer) % kAlignment != 0) {
      refuse(std::string(name) + " must be aligned to " + std::to_string(kAlignment) + " bytes");
    }
  }
  void stride(std::int64_t given, std::int64_t width, const char* name) const {
    if (given < width) {
      refuse(std::string(name) + " is " + std::to_string(given) + ", smaller than the row of " + std::to_string(width) +
             " elements");
    }
  }
  void dtype(Dtype given, const char* name) const {
    if (dtype_size(given) == 0) {
      refuse(std::string(name) + " is no known dtype (allowed: float32, bfloat16, float16)");
    }
  }

 private:
  static constexpr std::uintptr_t kAlignment = 16;  // of one vector load
  const char* function_;
};

void check_multiple(const Door& door, std::int64_t given, std::int64_t most, const char* name) {
  door.expect(given >= 8 && given <= most && given % 8 == 0, std::string(name) + " is " + std::to_string(given) +
                                                                 "; allowed: multiples of 8 from 8 to " +
                                                                 std::to_string(most));
}

void check_shape(const Door& door, const Shape& shape) {
  check_multiple(door, shape.head_dim, 128, "head_dim");
  check_multiple(door, shape.state_size, 256, "state_size");
  door.expect(shape.num_heads >= 1, "num_heads is " + std::to_string(shape.num_heads) + "; at least 1 is needed");
  door.expect(shape.num_groups >= 1 && shape.num_heads % shape.num_groups == 0,
              "num_heads " + std::to_string(shape.num_heads) + " must be a multiple of num_groups, which is " +
                  std::to_string(shape.num_groups));
}

void check_block(const Door& door, const Block& block) {
  door.expect(block.batch >= 1, "batch is " + std::to_string(block.batch) + "; at least 1 is needed");
  door.expect(block.tokens >= 1, "tokens is " + std::to_string(block.tokens) + "; at least 1 is needed");
}

// Slot numbers can be read only where they lie: on the CPU. (A bad slot or cursor on a GPU makes its row's y NaN.)
void check_slots(const Door& door, const Device& device, const Block& block, std::int64_t slots) {
  door.expect(slots >= 1, "slots is " + std::to_string(slots) + "; at least 1 is needed");
  if (block.slots == nullptr) {
    door.expect(block.batch <= slots, "batch " + std::to_string(block.batch) +
                                          " without a slot map needs as many slots, "
                                          "there are " +
                                          std::to_string(slots));
    return;
  }
  if (device.kind != DeviceKind::cpu) return;
  std::vector<bool> taken(static_cast<std::size_t>(slots), false);
  for (std::int64_t row = 0; row < block.batch; ++row) {
    const std::int64_t slot = block.slots[row];
    if (slot < 0) continue;
    const std::string what = "row " + std::to_string(row) + " names slot " + std::to_string(slot);
    door.expect(slot < slots, what + "; there are " + std::to_string(slots));
    door.expect(!taken[static_cast<std::size_t>(slot)], what + ", which another row of the block names too");
    taken[static_cast<std::size_t>(slot)] = true;
  }
}

void check_cursors(const Door& door, const Device& device, const Block& block, const ReplayForm& form,
                   const Ring& ring) {
  if (device.kind != DeviceKind::cpu) return;
  for (std::int64_t row = 0; row < block.batch; ++row) {
    const std::int64_t slot = block.slots == nullptr ? row : block.slots[row];
    if (slot < 0) continue;
    const std::int32_t cursor = ring.cursor[slot];
    door.expect(cursor >= 0 && cursor < form.buffer_len,
                "the cursor of slot " + std::to_string(slot) + " is " + std::to_string(cursor) +
                    "; allowed: 0 to buffer_len - 1 = " + std::to_string(form.buffer_len - 1));
  }
}

void check_inputs(const Door& door, const Shape& shape, const Inputs& in) {
  door.present(in.x, "x");
  door.present(in.B, "B");
  door.present(in.C, "C");
  door.present(in.dt, "dt");
  door.dtype(in.dtype, "the inputs' dtype");
  door.stride(in.x_stride, shape.num_heads * shape.head_dim, "x_stride");
  door.stride(in.B_stride, shape.num_groups * shape.state_size, "B_stride");
  door.stride(in.C_stride, shape.num_groups * shape.state_size, "C_stride");
  door.stride(in.dt_stride, shape.num_heads, "dt_stride");
}

void check_parameters(const Door& door, const Parameters& parameters) {
  door.present(parameters.A_log, "A_log");
  door.present(parameters.D, "D");
  door.present(parameters.dt_bias, "dt_bias");
  door.expect(parameters.dt_min >= 0.0F && parameters.dt_max >= parameters.dt_min,
              "dt_min is " + std::to_string(parameters.dt_min) + " and dt_max " + std::to_string(parameters.dt_max) +
                  "; needed: 0 <= dt_min <= dt_max");
}

void check_state(const Door& door, const State& state) {
  door.aligned(state.data, "the state");
  door.dtype(state.storage.dtype, "the state's dtype");
  door.expect(state.storage.overflow == Overflow::infinity || state.storage.overflow == Overflow::saturate,
              "the state's overflow is neither infinity nor saturate");
}

void check_output(const Door& door, const Shape& shape, const Output& out) {
  door.present(out.y, "y");
  door.dtype(out.dtype, "y's dtype");
  door.stride(out.y_stride, shape.num_heads * shape.head_dim, "y_stride");
}

void check_buffer_len(const Door& door, std::int64_t buffer_len) {
  const auto most = static_cast<std::int64_t>(kMaxBufferLen);
  door.expect(buffer_len >= 1 && buffer_len <= most,
              "buffer_len is " + std::to_string(buffer_len) + "; allowed: 1 to " + std::to_string(most));
}

void check_ring(const Door& door, const ReplayForm& form, const Ring& ring) {
  check_buffer_len(door, form.buffer_len);
  door.expect(form.route == Route::output_only || form.route == Route::state_and_output,
              "route is neither output_only nor state_and_output");
  door.expect(form.flush == Flush::summed || form.flush == Flush::sequential, "flush is neither summed nor sequential");
  door.expect(form.ring_dtype == Dtype::float32 || form.ring_dtype == Dtype::bfloat16,
              "ring_dtype is " + std::string(dtype_name(form.ring_dtype)) + "; allowed: float32, bfloat16");
  door.aligned(ring.x, "the ring's x");
  door.aligned(ring.B, "the ring's B");
  door.present(ring.dt, "the ring's dt");
  door.present(ring.cursor, "the ring's cursor");
}

}  // namespace

void check_device(const Device& device, const char* function) {
  if (device.kind == DeviceKind::cpu) return;
  const std::string name = "mamba2::" + std::string(function) + ": ";
  if (device.kind != DeviceKind::cuda) throw std::invalid_argument(name + "the device is neither cpu nor cuda");
  if (!built_with_cuda()) {
    throw std::runtime_error(name + "a cuda device was asked for, but this program was built without CUDA");
  }
}

void check_exact(const Device& device, const Shape& shape, const Block& block, const Inputs& in,
                 const Parameters& parameters, const State& state, const Output& out) {
  const Door door("exact");
  check_shape(door, shape);
  check_block(door, block);
  check_inputs(door, shape, in);
  check_parameters(door, parameters);
  check_state(door, state);
  check_output(door, shape, out);
  check_slots(door, device, block, state.slots);
}

void check_replay(const Device& device, const Shape& shape, const ReplayForm& form, const Block& block,
                  const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                  const Output& out) {
  const Door door("replay");
  check_shape(door, shape);
  check_block(door, block);
  check_inputs(door, shape, in);
  check_parameters(door, parameters);
  check_state(door, state);
  check_ring(door, form, ring);
  check_output(door, shape, out);
  check_slots(door, device, block, state.slots);
  check_cursors(door, device, block, form, ring);
}

void check_reconstruct(const Device& device, const Shape& shape, const ReplayForm& form, const Block& block,
                       const Parameters& parameters, const State& state, const Ring& ring, const float* state_out) {
  const Door door("reconstruct");
  check_shape(door, shape);
  door.expect(block.batch >= 1, "batch is " + std::to_string(block.batch) + "; at least 1 is needed");
  door.present(parameters.A_log, "A_log");
  check_state(door, state);
  check_ring(door, form, ring);
  door.aligned(state_out, "state_out");
  check_slots(door, device, block, state.slots);
  check_cursors(door, device, block, form, ring);
}

void check_advance_cursors(const Block& block, std::int64_t buffer_len, const std::int32_t* cursor) {
  const Door door("advance_cursors");
  check_block(door, block);
  check_buffer_len(door, buffer_len);
  door.present(cursor, "cursor");
}

void check_conv(const Device& device, const Block& block, const Conv& conv) {
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

void check_gated_norm(const GatedNorm& norm) {
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

}  // namespace replayeval::mamba2
