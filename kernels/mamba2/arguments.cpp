#include "kernels/mamba2/arguments.h"

#include "kernels/door.h"

#include <string>

namespace replayeval::mamba2 {
namespace {

void check_shape(const Door& door, const Shape& shape) {
  check_multiple(door, shape.head_dim, 128, "head_dim");
  check_multiple(door, shape.state_size, 256, "state_size");
  door.expect(shape.num_heads >= 1, "num_heads is " + std::to_string(shape.num_heads) + "; at least 1 is needed");
  door.expect(shape.num_groups >= 1 && shape.num_heads % shape.num_groups == 0,
              "num_heads " + std::to_string(shape.num_heads) + " must be a multiple of num_groups, which is " +
                  std::to_string(shape.num_groups));
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

void check_output(const Door& door, const Shape& shape, const Output& out) {
  door.present(out.y, "y");
  door.dtype(out.dtype, "y's dtype");
  door.stride(out.y_stride, shape.num_heads * shape.head_dim, "y_stride");
}

void check_ring(const Door& door, const ReplayForm& form, const Ring& ring) {
  check_form(door, form.buffer_len, form.route, form.flush, form.ring_dtype);
  door.aligned(ring.x, "the ring's x");
  door.aligned(ring.B, "the ring's B");
  door.present(ring.dt, "the ring's dt");
  door.present(ring.cursor, "the ring's cursor");
}

}  // namespace

void check_device(const Device& device, const char* function) {
  replayeval::check_device(device, "mamba2::" + std::string(function));
}

void check_exact(const Device& device, const Shape& shape, const Block& block, const Inputs& in,
                 const Parameters& parameters, const State& state, const Output& out) {
  const Door door("mamba2::exact");
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
  const Door door("mamba2::replay");
  check_shape(door, shape);
  check_block(door, block);
  check_inputs(door, shape, in);
  check_parameters(door, parameters);
  check_state(door, state);
  check_ring(door, form, ring);
  check_output(door, shape, out);
  check_slots(door, device, block, state.slots);
  check_cursors(door, device, block, form.buffer_len, ring.cursor);
}

void check_reconstruct(const Device& device, const Shape& shape, const ReplayForm& form, const Block& block,
                       const Parameters& parameters, const State& state, const Ring& ring, const float* state_out) {
  const Door door("mamba2::reconstruct");
  check_shape(door, shape);
  door.expect(block.batch >= 1, "batch is " + std::to_string(block.batch) + "; at least 1 is needed");
  door.present(parameters.A_log, "A_log");
  check_state(door, state);
  check_ring(door, form, ring);
  door.aligned(state_out, "state_out");
  check_slots(door, device, block, state.slots);
  check_cursors(door, device, block, form.buffer_len, ring.cursor);
}

void check_advance_cursors(const Block& block, std::int64_t buffer_len, const std::int32_t* cursor) {
  const Door door("mamba2::advance_cursors");
  check_block(door, block);
  check_buffer_len(door, buffer_len);
  door.present(cursor, "cursor");
}

}  // namespace replayeval::mamba2
