#include "tests/kernels/delta_rule_decoder.h"

#include "kernels/gated_delta/gated_delta.h"
#include "kernels/kda/kda.h"

#include <cstring>
#include <random>

namespace replayeval::testing {
namespace {

std::size_t bytes_of(std::int64_t elements, Dtype dtype) {
  return static_cast<std::size_t>(elements) * dtype_size(dtype);
}

}  // namespace

DeltaProblem random_delta_problem(delta_rule::Family family, const delta_rule::Shape& shape, std::int64_t sequences,
                                  std::int64_t tokens, Dtype dtype, unsigned seed) {
  std::mt19937 random(seed);
  DeltaProblem p;
  p.family = family;
  p.shape = shape;
  p.sequences = sequences;
  p.tokens = tokens;
  p.dtype = dtype;
  const std::int64_t count = sequences * tokens;
  p.q = random_values(random, count * shape.num_key_heads * shape.key_dim, 0.0F, 1.0F, dtype);
  p.k = random_values(random, count * shape.num_key_heads * shape.key_dim, 0.0F, 1.0F, dtype);
  p.v = random_values(random, count * shape.num_value_heads * shape.value_dim, 0.0F, 1.0F, dtype);
  p.b = random_values(random, count * shape.num_value_heads, 0.5F, 2.0F, dtype);
  p.f = random_values(random, count * shape.num_value_heads * p.gates(), -1.0F, 1.0F, dtype);
  p.A_log = uniform_values(random, shape.num_value_heads, -3.0F, 1.5F);
  p.dt_bias = uniform_values(random, shape.num_value_heads * p.gates(), -3.0F, 0.0F);
  p.allow_neg_eigval = seed % 2 == 1;
  if (family == delta_rule::Family::kda && seed % 3 != 0) {
    p.gate = delta_rule::Gate::bounded;
    p.lower_bound = -2.0F;
  }
  return p;
}

std::string arm_name(const DeltaArm& arm) {
  std::string name = arm.replay ? "replay" : "exact";
  name += " state " + std::string(dtype_name(arm.storage.dtype));
  if (arm.storage.overflow == Overflow::saturate) name += " saturating";
  if (!arm.replay) return name;
  name += arm.form.ring_form == delta_rule::RingForm::deltas ? " deltas" : " inputs";
  name += " ring " + std::string(dtype_name(arm.form.ring_dtype)) + " L " + std::to_string(arm.form.buffer_len);
  name += arm.form.route == Route::output_only ? " output_only" : " state_and_output";
  name += arm.form.flush == Flush::summed ? " summed" : " sequential";
  return name;
}

DeltaDecoder::DeltaDecoder(DeviceKind kind, const DeltaProblem& problem, const DeltaArm& arm, std::int64_t slots)
    : device_{kind, nullptr},
      problem_(problem),
      arm_(arm),
      slots_(slots),
      state_(kind, bytes_of(slots * static_cast<std::int64_t>(state_elements()), arm.storage.dtype)),
      ring_values_(kind, bytes_of(slots * problem.shape.num_value_heads * arm.form.buffer_len * problem.shape.value_dim,
                                  arm.form.ring_dtype)),
      ring_k_(kind, bytes_of(slots * problem.shape.num_key_heads * arm.form.buffer_len * problem.shape.key_dim,
                             arm.form.ring_dtype)),
      ring_log_decay_(kind, bytes_of(slots * problem.shape.num_value_heads * arm.form.buffer_len * problem.gates(),
                                     Dtype::float32)),
      ring_beta_(kind, bytes_of(slots * problem.shape.num_value_heads * arm.form.buffer_len, Dtype::float32)),
      cursor_(kind, static_cast<std::size_t>(slots) * sizeof(std::int32_t)),
      counts_(kind, sizeof(StorageCounts)),
      a_log_(kind, problem.A_log.size() * sizeof(float)),
      dt_bias_(kind, problem.dt_bias.size() * sizeof(float)) {
  a_log_.upload_values(problem.A_log);
  dt_bias_.upload_values(problem.dt_bias);
  counts_.upload_values(std::vector<StorageCounts>(1));
  for (std::int64_t slot = 0; slot < slots; ++slot) reset_slot(slot);
}

std::size_t DeltaDecoder::state_elements() const {
  const delta_rule::Shape& s = problem_.shape;
  return static_cast<std::size_t>(s.num_value_heads * s.value_dim * s.key_dim);
}

void DeltaDecoder::reset_slot(std::int64_t slot) {
  set_state(slot, std::vector<float>(state_elements(), 0.0F));
  const std::int32_t zero = 0;
  cursor_.upload(std::as_bytes(std::span(&zero, 1)), static_cast<std::size_t>(slot) * sizeof(zero));
}

void DeltaDecoder::set_state(std::int64_t slot, const std::vector<float>& values) {
  const Bytes bytes = encode_all(values, arm_.storage.dtype);
  state_.upload(bytes, static_cast<std::size_t>(slot) * bytes.size());
}

State DeltaDecoder::state_view() { return {state_.data(), arm_.storage, slots_, counts_.data<StorageCounts>()}; }

delta_rule::Ring DeltaDecoder::ring_view() {
  const bool inputs = arm_.form.ring_form == delta_rule::RingForm::inputs;
  return {ring_values_.data(), ring_k_.data(), ring_log_decay_.data<float>(),
          inputs ? ring_beta_.data<float>() : nullptr, cursor_.data<std::int32_t>()};
}

delta_rule::Parameters DeltaDecoder::parameters() {
  return {a_log_.data<float>(), dt_bias_.data<float>(), problem_.allow_neg_eigval,
          problem_.numerics,    problem_.gate,          problem_.lower_bound};
}

void DeltaDecoder::run(const DecodeBlock& block, const delta_rule::Inputs& in, const Output& out) {
  const auto call = [&](const auto& exact, const auto& replay, const auto& advance) {
    if (!arm_.replay) return exact(device_, problem_.shape, block, in, parameters(), state_view(), out);
    replay(device_, problem_.shape, arm_.form, block, in, parameters(), state_view(), ring_view(), out);
    advance(device_, block, arm_.form.buffer_len, cursor_.data<std::int32_t>());
  };
  if (kda()) {
    call(kda::exact, kda::replay, kda::advance_cursors);
  } else {
    call(gated_delta::exact, gated_delta::replay, gated_delta::advance_cursors);
  }
}

Bytes DeltaDecoder::feed(const std::vector<FeedRow>& rows, std::int64_t tokens, bool identity_slots) {
  const delta_rule::Shape& s = problem_.shape;
  const std::int64_t k_width = s.num_key_heads * s.key_dim;
  const std::int64_t v_width = s.num_value_heads * s.value_dim;
  const std::int64_t f_width = s.num_value_heads * problem_.gates();
  const auto input = [&](const std::vector<float>& values, std::int64_t width) {
    return gather(device_.kind, rows, tokens, values, problem_.tokens, width, problem_.dtype, problem_.stride_pad);
  };
  DeviceBuffer q = input(problem_.q, k_width);
  DeviceBuffer k = input(problem_.k, k_width);
  DeviceBuffer v = input(problem_.v, v_width);
  DeviceBuffer b = input(problem_.b, s.num_value_heads);
  DeviceBuffer f = input(problem_.f, f_width);
  const delta_rule::Inputs in{q.data(),
                              k.data(),
                              v.data(),
                              b.data(),
                              f.data(),
                              k_width + problem_.stride_pad,
                              k_width + problem_.stride_pad,
                              v_width + problem_.stride_pad,
                              s.num_value_heads + problem_.stride_pad,
                              f_width + problem_.stride_pad,
                              problem_.dtype};

  std::vector<std::int32_t> slot_map;
  slot_map.reserve(rows.size());
  for (const FeedRow& row : rows) slot_map.push_back(row.slot);
  DeviceBuffer slots(device_.kind, slot_map.size() * sizeof(std::int32_t));
  slots.upload_values(slot_map);

  const std::size_t y_size = dtype_size(problem_.y_dtype);
  const std::int64_t y_stride = v_width + problem_.stride_pad;
  DeviceBuffer y(device_.kind, rows.size() * static_cast<std::size_t>(tokens * y_stride) * y_size);
  run({static_cast<std::int64_t>(rows.size()), tokens, identity_slots ? nullptr : slots.data<std::int32_t>()}, in,
      {y.data(), y_stride, problem_.y_dtype});
  synchronize(device_.kind);
  return without_padding(y.download(), rows.size() * static_cast<std::size_t>(tokens), v_width, y_size,
                         problem_.stride_pad);
}

DeltaSlotBits DeltaDecoder::slot_bits(std::int64_t slot) const {
  const delta_rule::Shape& s = problem_.shape;
  DeltaSlotBits bits;
  const std::size_t state_bytes = state_elements() * dtype_size(arm_.storage.dtype);
  bits.state = state_.download(static_cast<std::size_t>(slot) * state_bytes, state_bytes);
  const Bytes cursor = cursor_.download(static_cast<std::size_t>(slot) * sizeof(std::int32_t), sizeof(std::int32_t));
  std::memcpy(&bits.cursor, cursor.data(), sizeof(bits.cursor));
  if (!arm_.replay) return bits;
  const auto append = [&](Bytes& to, const DeviceBuffer& ring, std::int64_t owners, std::int64_t width, Dtype dtype) {
    for (std::int64_t owner = 0; owner < owners; ++owner) {
      const std::int64_t first = (slot * owners + owner) * arm_.form.buffer_len * width;
      const Bytes live = ring.download(bytes_of(first, dtype), bytes_of(bits.cursor * width, dtype));
      to.insert(to.end(), live.begin(), live.end());
    }
  };
  append(bits.values, ring_values_, s.num_value_heads, s.value_dim, arm_.form.ring_dtype);
  append(bits.k, ring_k_, s.num_key_heads, s.key_dim, arm_.form.ring_dtype);
  append(bits.log_decay, ring_log_decay_, s.num_value_heads, problem_.gates(), Dtype::float32);
  if (arm_.form.ring_form == delta_rule::RingForm::inputs) {
    append(bits.beta, ring_beta_, s.num_value_heads, 1, Dtype::float32);
  }
  return bits;
}

std::vector<float> DeltaDecoder::state(std::int64_t slot) const {
  return decode_all(slot_bits(slot).state, arm_.storage.dtype);
}

std::vector<float> DeltaDecoder::reconstructed(const std::vector<std::int32_t>& slots) {
  DeviceBuffer slot_map(device_.kind, slots.size() * sizeof(std::int32_t));
  slot_map.upload_values(slots);
  DeviceBuffer out(device_.kind, slots.size() * state_elements() * sizeof(float));
  const DecodeBlock block{static_cast<std::int64_t>(slots.size()), 1, slot_map.data<std::int32_t>()};
  const auto reconstruct = kda() ? kda::reconstruct : gated_delta::reconstruct;
  reconstruct(device_, problem_.shape, arm_.form, block, state_view(), ring_view(), out.data<float>());
  synchronize(device_.kind);
  return decode_all(out.download(), Dtype::float32);
}

StorageCounts DeltaDecoder::counts() const {
  StorageCounts counts;
  const Bytes bytes = counts_.download();
  std::memcpy(&counts, bytes.data(), sizeof(counts));
  return counts;
}

Bytes token_bits(const DeltaProblem& problem, const Bytes& y, std::int64_t tokens, std::int64_t row,
                 std::int64_t token) {
  const std::int64_t width = problem.shape.num_value_heads * problem.shape.value_dim;
  return row_bits(y, bytes_of(width, problem.y_dtype), row * tokens + token);
}

}  // namespace replayeval::testing
