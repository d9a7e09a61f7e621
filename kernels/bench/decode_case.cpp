#include "kernels/bench/decode_case.h"

#include "kernels/bench/fill.h"
#include "kernels/storage_scalar.h"

namespace replayeval::bench {
DecodeCase::DecodeCase(BenchDevice& device, const ReplayOptions& options, std::int64_t batch, const Part& part,
                       Dtype state, std::int64_t state_elements)
    : device_(device),
      options_(options),
      block_{batch, options.tokens, nullptr},
      part_(part),
      state_dtype_(state),
      state_elements_(state_elements) {
  const std::size_t bytes = bytes_of(state_elements, state);
  const std::size_t copies = part.one_copy ? 1 : rotated_copies(bytes);
  for (std::size_t i = 0; i < copies; ++i) states_.push_back(normal(state_elements, state));
  if (block_.tokens > 1) counts_ = static_cast<StorageCounts*>(device.allocate(sizeof(StorageCounts)));
  const auto cursors = [&](std::int64_t step, std::int64_t lead) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(batch));
    for (std::int64_t b = 0; b < batch; ++b) {
      values[static_cast<std::size_t>(b)] = static_cast<std::int32_t>((step + lead * b) % options.buffer_len);
    }
    auto* memory = static_cast<std::int32_t*>(device.allocate(values.size() * sizeof(std::int32_t)));
    device.upload(memory, values.data(), values.size() * sizeof(std::int32_t));
    return memory;
  };
  for (std::int64_t step = 0; step < options.buffer_len; ++step) {
    in_step_.push_back(cursors(step, 0));
    mixed_.push_back(cursors(step, 1));
  }
}

State DecodeCase::state(std::size_t copy) const {
  return {states_[copy], {state_dtype_, Overflow::infinity}, block_.batch, counts_};
}

void DecodeCase::exact_steps() {
  for (std::size_t i = 0; i < copies(); ++i) exact_step(state(i));
}

void DecodeCase::replay_steps(std::int64_t step, bool mixed) {
  const std::int32_t* cursors = (mixed ? mixed_ : in_step_)[static_cast<std::size_t>(step)];
  for (std::size_t i = 0; i < copies(); ++i) replay_step(state(i), i, cursors);
}

double DecodeCase::replay_bytes() const {
  if (block_.tokens > 1) return exact_bytes();
  const auto L = static_cast<double>(options_.buffer_len);
  return state_bytes() * (1.0 + 1.0 / L) + entry_bytes() * ((L - 1.0) / 2.0 + (L - 1.0) / L) + token_bytes();
}

std::size_t DecodeCase::bytes_of(std::int64_t per_row, Dtype dtype) const {
  return static_cast<std::size_t>(block_.batch * per_row) * dtype_size(dtype);
}

void* DecodeCase::normal(std::int64_t per_row, Dtype dtype) {
  const std::size_t bytes = bytes_of(per_row, dtype);
  void* memory = device_.allocate(bytes);
  fill_normal(device_, memory, bytes, dtype, static_cast<std::size_t>(part_.first_sequence * per_row));
  return memory;
}

Output DecodeCase::make_output(std::int64_t width, Dtype dtype) {
  return {device_.allocate(bytes_of(width * block_.tokens, dtype)), width, dtype};
}

std::vector<float> DecodeCase::y(std::int64_t sequence) const {
  const auto width = static_cast<std::size_t>(out_.y_stride * block_.tokens);
  const std::size_t size = dtype_size(out_.dtype);
  std::vector<std::byte> bytes(width * size);
  device_.download(bytes.data(),
                   static_cast<const std::byte*>(out_.y) + static_cast<std::size_t>(sequence) * bytes.size(),
                   bytes.size());
  std::vector<float> values(width);
  for (std::size_t i = 0; i < width; ++i) values[i] = storage::load(bytes.data(), i, out_.dtype);
  return values;
}

float* DecodeCase::zeros(std::int64_t per_row) {
  return static_cast<float*>(device_.allocate(bytes_of(per_row, Dtype::float32)));
}

float* DecodeCase::uniform(std::int64_t count, unsigned seed) { return make_uniform(device_, count, seed); }

}  // namespace replayeval::bench
