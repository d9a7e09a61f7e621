#include "kernels/delta_rule/arguments.h"

#include "kernels/door.h"

#include <string>

namespace replayeval::delta_rule {
namespace {

std::string function_name(Family family, const char* function) {
  return std::string(family == Family::kda ? "kda::" : "gated_delta::") + function;
}

void check_shape(const Door& door, const Shape& shape) {
  check_multiple(door, shape.key_dim, 256, "key_dim");
  check_multiple(door, shape.value_dim, 256, "value_dim");
  door.expect(shape.num_value_heads >= 1,
              "num_value_heads is " + std::to_string(shape.num_value_heads) + "; at least 1 is needed");
  door.expect(shape.num_key_heads >= 1 && shape.num_value_heads % shape.num_key_heads == 0,
              "num_value_heads " + std::to_string(shape.num_value_heads) +
                  " must be a multiple of num_key_heads, which is " + std::to_string(shape.num_key_heads));
}

void check_inputs(const Door& door, Family family, const Shape& shape, const Inputs& in) {
  door.present(in.q, "q");
  door.present(in.k, "k");
  door.present(in.v, "v");
  door.present(in.b, "b");
  door.present(in.f, "f");
  door.dtype(in.dtype, "the inputs' dtype");
  door.stride(in.q_stride, shape.num_key_heads * shape.key_dim, "q_stride");
  door.stride(in.k_stride, shape.num_key_heads * shape.key_dim, "k_stride");
  door.stride(in.v_stride, shape.num_value_heads * shape.value_dim, "v_stride");
  door.stride(in.b_stride, shape.num_value_heads, "b_stride");
  door.stride(in.f_stride, shape.num_value_heads * gate_dim(family, shape), "f_stride");
}

void check_precision(const Door& door, Precision precision, const char* name) {
  door.expect(precision == Precision::float32 || precision == Precision::compute,
              std::string("numerics.") + name + " is neither float32 nor compute");
}

void check_parameters(const Door& door, Family family, const Parameters& p) {
  door.present(p.A_log, "A_log");
  door.present(p.dt_bias, "dt_bias");
  check_precision(door, p.numerics.beta, "beta");
  check_precision(door, p.numerics.log_decay, "log_decay");
  check_precision(door, p.numerics.qk_norm, "qk_norm");
  if (p.gate == Gate::softplus) return;
  door.expect(p.gate == Gate::bounded, "gate is neither softplus nor bounded");
  door.expect(family == Family::kda, "gate is bounded; allowed: softplus");
  door.expect(p.lower_bound < 0.0F, "lower_bound is " + std::to_string(p.lower_bound) + "; needed: a negative number");
}

void check_output(const Door& door, const Shape& shape, const Output& out) {
  door.present(out.y, "y");
  door.dtype(out.dtype, "y's dtype");
  door.stride(out.y_stride, shape.num_value_heads * shape.value_dim, "y_stride");
}

void check_ring(const Door& door, const ReplayForm& form, const Ring& ring) {
  check_form(door, form.buffer_len, form.route, form.flush, form.ring_dtype);
  door.expect(form.ring_form == RingForm::deltas || form.ring_form == RingForm::inputs,
              "ring_form is neither deltas nor inputs");
  door.expect(
      form.flush == Flush::summed || form.ring_form == RingForm::inputs,
      "flush is sequential, which needs ring_form inputs: a deltas ring does not hold what the recurrence reads");
  door.aligned(ring.values, "the ring's values");
  door.aligned(ring.k, "the ring's k");
  door.present(ring.log_decay, "the ring's log_decay");
  if (form.ring_form == RingForm::inputs) door.present(ring.beta, "the ring's beta");
  door.present(ring.cursor, "the ring's cursor");
}

}  // namespace

void check_exact(const Device& device, Family family, const Shape& shape, const Block& block, const Inputs& in,
                 const Parameters& parameters, const State& state, const Output& out) {
  const std::string name = function_name(family, "exact");
  const Door door(name.c_str());
  check_device(device, name);
  check_shape(door, shape);
  check_block(door, block);
  check_inputs(door, family, shape, in);
  check_parameters(door, family, parameters);
  check_state(door, state);
  check_output(door, shape, out);
  check_slots(door, device, block, state.slots);
}

void check_replay(const Device& device, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                  const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                  const Output& out) {
  const std::string name = function_name(family, "replay");
  const Door door(name.c_str());
  check_device(device, name);
  check_shape(door, shape);
  check_block(door, block);
  check_inputs(door, family, shape, in);
  check_parameters(door, family, parameters);
  check_state(door, state);
  check_ring(door, form, ring);
  check_output(door, shape, out);
  check_slots(door, device, block, state.slots);
  check_cursors(door, device, block, form.buffer_len, ring.cursor);
}

void check_reconstruct(const Device& device, Family family, const Shape& shape, const ReplayForm& form,
                       const Block& block, const State& state, const Ring& ring, const float* state_out) {
  const std::string name = function_name(family, "reconstruct");
  const Door door(name.c_str());
  check_device(device, name);
  check_shape(door, shape);
  door.expect(block.batch >= 1, "batch is " + std::to_string(block.batch) + "; at least 1 is needed");
  check_state(door, state);
  check_ring(door, form, ring);
  door.aligned(state_out, "state_out");
  check_slots(door, device, block, state.slots);
  check_cursors(door, device, block, form.buffer_len, ring.cursor);
}

void check_advance_cursors(const Device& device, Family family, const Block& block, std::int64_t buffer_len,
                           const std::int32_t* cursor) {
  const std::string name = function_name(family, "advance_cursors");
  const Door door(name.c_str());
  check_device(device, name);
  check_block(door, block);
  check_buffer_len(door, buffer_len);
  door.present(cursor, "cursor");
}

}  // namespace replayeval::delta_rule
