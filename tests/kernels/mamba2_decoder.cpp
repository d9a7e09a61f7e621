#include "tests/kernels/mamba2_decoder.h"

#include <cstring>
#include <random>
#include <stdexcept>

namespace replayeval::testing {
Mamba2Problem random_problem(const mamba2::Shape& shape, std::int64_t sequences, std::int64_t tokens, Dtype dtype,
                             unsigned seed) {
  std::mt19937 random(seed);
  Mamba2Problem p;
  p.shape = shape;
  p.sequences = sequences;
  p.tokens = tokens;
  p.dtype = dtype;
  const std::int64_t count = sequences * tokens;
  p.x = random_values(random, count * shape.num_heads * shape.head_dim, 0.0F, 1.0F, dtype);
  p.B = random_values(random, count * shape.num_groups * shape.state_size, 0.0F, 1.0F, dtype);
  p.C = random_values(random, count * shape.num_groups * shape.state_size, 0.0F, 1.0F, dtype);
  p.dt = random_values(random, count * shape.num_heads, -1.0F, 1.0F, dtype);
  p.A_log = uniform_values(random, shape.num_heads, -3.0F, 2.5F);
  p.D = uniform_values(random, shape.num_heads, -1.0F, 1.0F);
  p.dt_bias = uniform_values(random, shape.num_heads, -3.0F, 0.0F);
  return p;
}

std::string arm_name(const Mamba2Arm& arm) {
  std::string name = arm.replay ? "replay" : "exact";
  name += " state " + std::string(dtype_name(arm.storage.dtype));
  if (arm.storage.overflow == Overflow::saturate) name += " saturating";
  if (!arm.replay) return name;
  name += " ring " + std::string(dtype_name(arm.form.ring_dtype)) + " L " + std::to_string(arm.form.buffer_len);
  name += arm.form.route == mamba2::Route::output_only ? " output_only" : " state_and_output";
  name += arm.form.flush == mamba2::Flush::summed ? " summed" : " sequential";
  return name;
}

Mamba2Decoder::Mamba2Decoder(DeviceKind kind, const Mamba2Problem& problem, const Mamba2Arm& arm, std::int64_t slots)
    : device_{kind, nullptr},
      problem_(problem),
      arm_(arm),
      slots_(slots),
      state_(kind, static_cast<std::size_t>(slots) * state_elements() * dtype_size(arm.storage.dtype)),
      ring_x_(kind,
              static_cast<std::size_t>(slots * problem.shape.num_heads * arm.form.buffer_len * problem.shape.head_dim) *
                  dtype_size(arm.form.ring_dtype)),
      ring_B_(kind, static_cast<std::size_t>(slots * problem.shape.num_groups * arm.form.buffer_len *
                                             problem.shape.state_size) *
                        dtype_size(arm.form.ring_dtype)),
      ring_dt_(kind, static_cast<std::size_t>(slots * problem.shape.num_heads * arm.form.buffer_len) * sizeof(float)),
      cursor_(kind, static_cast<std::size_t>(slots) * sizeof(std::int32_t)),
      counts_(kind, sizeof(StorageCounts)),
      a_log_(kind, problem.A_log.size() * sizeof(float)),
      d_(kind, problem.D.size() * sizeof(float)),
      dt_bias_(kind, problem.dt_bias.size() * sizeof(float)) {
  a_log_.upload_values(problem.A_log);
  d_.upload_values(problem.D);
  dt_bias_.upload_values(problem.dt_bias);
  counts_.upload_values(std::vector<StorageCounts>(1));
  for (std::int64_t slot = 0; slot < slots; ++slot) reset_slot(slot);
}

std::size_t Mamba2Decoder::state_elements() const {
  const mamba2::Shape& s = problem_.shape;
  return static_cast<std::size_t>(s.num_heads * s.head_dim * s.state_size);
}

void Mamba2Decoder::reset_slot(std::int64_t slot) {
  set_state(slot, std::vector<float>(state_elements(), 0.0F));
  const std::int32_t zero = 0;
  cursor_.upload(std::as_bytes(std::span(&zero, 1)), static_cast<std::size_t>(slot) * sizeof(zero));
}

void Mamba2Decoder::set_state(std::int64_t slot, const std::vector<float>& values) {
  const Bytes bytes = encode_all(values, arm_.storage.dtype);
  state_.upload(bytes, static_cast<std::size_t>(slot) * bytes.size());
}

mamba2::State Mamba2Decoder::state_view() {
  return {state_.data(), arm_.storage, slots_, counts_.data<StorageCounts>()};
}

mamba2::Ring Mamba2Decoder::ring_view() {
  return {ring_x_.data(), ring_B_.data(), ring_dt_.data<float>(), cursor_.data<std::int32_t>()};
}

mamba2::Parameters Mamba2Decoder::parameters() {
  return {a_log_.data<float>(), d_.data<float>(), dt_bias_.data<float>(), problem_.dt_min, problem_.dt_max};
}

void Mamba2Decoder::run(const mamba2::Block& block, const mamba2::Inputs& in, const mamba2::Output& out) {
  if (!arm_.replay) {
    mamba2::exact(device_, problem_.shape, block, in, parameters(), state_view(), out);
    return;
  }
  mamba2::replay(device_, problem_.shape, arm_.form, block, in, parameters(), state_view(), ring_view(), out);
  mamba2::advance_cursors(device_, block, arm_.form.buffer_len, cursor_.data<std::int32_t>());
}

Bytes Mamba2Decoder::feed(const std::vector<FeedRow>& rows, std::int64_t tokens, bool identity_slots) {
  const mamba2::Shape& s = problem_.shape;
  const std::int64_t x_width = s.num_heads * s.head_dim;
  const std::int64_t B_width = s.num_groups * s.state_size;
  DeviceBuffer x =
      gather(device_.kind, rows, tokens, problem_.x, problem_.tokens, x_width, problem_.dtype, problem_.stride_pad);
  DeviceBuffer B =
      gather(device_.kind, rows, tokens, problem_.B, problem_.tokens, B_width, problem_.dtype, problem_.stride_pad);
  DeviceBuffer C =
      gather(device_.kind, rows, tokens, problem_.C, problem_.tokens, B_width, problem_.dtype, problem_.stride_pad);
  DeviceBuffer dt = gather(device_.kind, rows, tokens, problem_.dt, problem_.tokens, s.num_heads, problem_.dtype,
                           problem_.stride_pad);
  const mamba2::Inputs in{x.data(),
                          B.data(),
                          C.data(),
                          dt.data(),
                          x_width + problem_.stride_pad,
                          B_width + problem_.stride_pad,
                          B_width + problem_.stride_pad,
                          s.num_heads + problem_.stride_pad,
                          problem_.dtype};

  std::vector<std::int32_t> slot_map;
  slot_map.reserve(rows.size());
  for (const FeedRow& row : rows) slot_map.push_back(row.slot);
  DeviceBuffer slots(device_.kind, slot_map.size() * sizeof(std::int32_t));
  slots.upload_values(slot_map);

  const std::size_t y_size = dtype_size(problem_.y_dtype);
  const std::int64_t y_stride = x_width + problem_.stride_pad;
  DeviceBuffer y(device_.kind, rows.size() * static_cast<std::size_t>(tokens * y_stride) * y_size);
  run({static_cast<std::int64_t>(rows.size()), tokens, identity_slots ? nullptr : slots.data<std::int32_t>()}, in,
      {y.data(), y_stride, problem_.y_dtype});
  synchronize(device_.kind);

  return without_padding(y.download(), rows.size() * static_cast<std::size_t>(tokens), x_width, y_size,
                         problem_.stride_pad);
}

SlotBits Mamba2Decoder::slot_bits(std::int64_t slot) const {
  const mamba2::Shape& s = problem_.shape;
  SlotBits bits;
  const std::size_t state_bytes = state_elements() * dtype_size(arm_.storage.dtype);
  bits.state = state_.download(static_cast<std::size_t>(slot) * state_bytes, state_bytes);
  const Bytes cursor = cursor_.download(static_cast<std::size_t>(slot) * sizeof(std::int32_t), sizeof(std::int32_t));
  std::memcpy(&bits.cursor, cursor.data(), sizeof(bits.cursor));
  if (!arm_.replay) return bits;
  const auto append = [&](Bytes& to, const DeviceBuffer& ring, std::int64_t owners, std::int64_t width,
                          std::size_t size) {
    for (std::int64_t owner = 0; owner < owners; ++owner) {
      const std::int64_t first = (slot * owners + owner) * arm_.form.buffer_len * width;
      const Bytes live =
          ring.download(static_cast<std::size_t>(first) * size, static_cast<std::size_t>(bits.cursor * width) * size);
      to.insert(to.end(), live.begin(), live.end());
    }
  };
  append(bits.ring_x, ring_x_, s.num_heads, s.head_dim, dtype_size(arm_.form.ring_dtype));
  append(bits.ring_B, ring_B_, s.num_groups, s.state_size, dtype_size(arm_.form.ring_dtype));
  append(bits.ring_dt, ring_dt_, s.num_heads, 1, sizeof(float));
  return bits;
}

std::vector<float> Mamba2Decoder::state(std::int64_t slot) const {
  return decode_all(slot_bits(slot).state, arm_.storage.dtype);
}

std::vector<float> Mamba2Decoder::reconstructed(const std::vector<std::int32_t>& slots) {
  DeviceBuffer slot_map(device_.kind, slots.size() * sizeof(std::int32_t));
  slot_map.upload_values(slots);
  DeviceBuffer out(device_.kind, slots.size() * state_elements() * sizeof(float));
  mamba2::reconstruct(device_, problem_.shape, arm_.form,
                      {static_cast<std::int64_t>(slots.size()), 1, slot_map.data<std::int32_t>()}, parameters(),
                      state_view(), ring_view(), out.data<float>());
  synchronize(device_.kind);
  return decode_all(out.download(), Dtype::float32);
}

StorageCounts Mamba2Decoder::counts() const {
  StorageCounts counts;
  const Bytes bytes = counts_.download();
  std::memcpy(&counts, bytes.data(), sizeof(counts));
  return counts;
}

Bytes token_bits(const Mamba2Problem& problem, const Bytes& y, std::int64_t tokens, std::int64_t row,
                 std::int64_t token) {
  const std::size_t bytes =
      static_cast<std::size_t>(problem.shape.num_heads * problem.shape.head_dim) * dtype_size(problem.y_dtype);
  return row_bits(y, bytes, row * tokens + token);
}

}  // namespace replayeval::testing
