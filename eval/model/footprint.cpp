#include "eval/model/footprint.h"

#include <cmath>

namespace replayeval {
namespace {

std::int64_t size_of(Dtype dtype) { return static_cast<std::int64_t>(dtype_size(dtype)); }

std::int64_t inner_size(const mamba2::Shape& shape) { return shape.num_heads * shape.head_dim; }

std::int64_t group_size(const mamba2::Shape& shape) { return shape.num_groups * shape.state_size; }

// x, B, C and the raw dt come in, y goes out.
std::int64_t input_output_bytes(const Architecture& architecture, Dtype compute) {
  const mamba2::Shape& shape = architecture.mamba;
  const std::int64_t elements = 2 * inner_size(shape) + 2 * group_size(shape) + shape.num_heads;
  return architecture.count(LayerKind::mamba2) * elements * size_of(compute);
}

}  // namespace

std::int64_t state_bytes(const Architecture& architecture, Dtype state) {
  return architecture.count(LayerKind::mamba2) * inner_size(architecture.mamba) * architecture.mamba.state_size *
         size_of(state);
}

std::int64_t ring_bytes(const Architecture& architecture, std::int64_t buffer_len, Dtype ring) {
  const mamba2::Shape& shape = architecture.mamba;
  const std::int64_t entry =
      (inner_size(shape) + group_size(shape)) * size_of(ring) + shape.num_heads * size_of(Dtype::float32);
  return architecture.count(LayerKind::mamba2) * buffer_len * entry;
}

std::int64_t conv_state_bytes(const Architecture& architecture, Dtype compute) {
  if (architecture.count(LayerKind::mamba2) == 0) return 0;
  return architecture.count(LayerKind::mamba2) * architecture.conv_dim() * (architecture.conv_kernel - 1) *
         size_of(compute);
}

std::int64_t kv_bytes_per_token(const Architecture& architecture, Dtype compute) {
  return architecture.count(LayerKind::attention) * 2 * architecture.num_kv_heads * architecture.head_dim *
         size_of(compute);
}

double exact_bytes_per_token(const Architecture& architecture, Dtype state, Dtype compute) {
  return static_cast<double>(2 * state_bytes(architecture, state) + input_output_bytes(architecture, compute));
}

double replay_bytes_per_token(const Architecture& architecture, std::int64_t buffer_len, Dtype state, Dtype ring,
                              Dtype compute) {
  const auto length = static_cast<double>(buffer_len);
  const auto entry = static_cast<double>(ring_bytes(architecture, 1, ring));
  const double entries = (length - 1.0) / 2.0 + (length - 1.0) / length;
  return (1.0 + 1.0 / length) * static_cast<double>(state_bytes(architecture, state)) + entry * entries +
         static_cast<double>(input_output_bytes(architecture, compute));
}

double weight_bytes_per_step(const Architecture& architecture, const StepWeights& weights, std::int64_t batch) {
  const auto sequences = static_cast<double>(batch);
  double touched = 0.0;
  if (architecture.mixture.experts > 0) {
    const double chosen =
        static_cast<double>(architecture.mixture.chosen) / static_cast<double>(architecture.mixture.experts);
    touched = 1.0 - std::pow(1.0 - chosen, sequences);
  }
  return static_cast<double>(weights.dense) + touched * static_cast<double>(weights.experts) +
         sequences * static_cast<double>(weights.embedding_row);
}

double step_bytes(const Architecture& architecture, const StepWeights& weights, std::int64_t batch, double mixer_bytes,
                  std::int64_t context, Dtype compute) {
  const double keys_and_values = static_cast<double>(kv_bytes_per_token(architecture, compute) * context);
  return weight_bytes_per_step(architecture, weights, batch) +
         static_cast<double>(batch) * (mixer_bytes + keys_and_values);
}

}  // namespace replayeval
