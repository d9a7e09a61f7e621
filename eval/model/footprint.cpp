#include "eval/model/footprint.h"

#include <cmath>

namespace replayeval {
namespace {

std::int64_t size_of(Dtype dtype) { return static_cast<std::int64_t>(dtype_size(dtype)); }

// Elements of one layer of the model's state-space kind, per sequence.
struct LayerElements {
  std::int64_t state = 0;
  std::int64_t ring_stored = 0, ring_float32 = 0;  // of one ring entry
  std::int64_t input_output = 0;                   // of one token
};

LayerElements mamba2_elements(const mamba2::Shape& shape) {
  const std::int64_t inner = shape.num_heads * shape.head_dim, group = shape.num_groups * shape.state_size;
  // x, B, C and the raw dt come in, y goes out.
  return {inner * shape.state_size, inner + group, shape.num_heads, 2 * inner + 2 * group + shape.num_heads};
}

LayerElements delta_elements(const delta_rule::Shape& shape, delta_rule::Family family, RingForm form) {
  const std::int64_t heads = shape.num_value_heads, gates = heads * delta_rule::gate_dim(family, shape);
  const std::int64_t key = shape.num_key_heads * shape.key_dim, value = heads * shape.value_dim;
  // q, k, v, the raw beta and the raw gates come in, y goes out.
  return {value * shape.key_dim, value + key, gates + (form == RingForm::inputs ? heads : 0),
          2 * key + 2 * value + heads + gates};
}

LayerElements elements_of(const Architecture& architecture, RingForm form = RingForm::inputs) {
  if (architecture.has_delta_rule()) return delta_elements(architecture.delta, architecture.delta_family(), form);
  return mamba2_elements(architecture.mamba);
}

std::int64_t input_output_bytes(const Architecture& architecture, Dtype compute) {
  return architecture.state_space_layers() * elements_of(architecture).input_output * size_of(compute);
}

}  // namespace

std::int64_t state_bytes(const Architecture& architecture, Dtype state) {
  return architecture.state_space_layers() * elements_of(architecture).state * size_of(state);
}

std::int64_t ring_bytes(const Architecture& architecture, RingForm form, std::int64_t buffer_len, Dtype ring) {
  const LayerElements elements = elements_of(architecture, form);
  const std::int64_t entry = elements.ring_stored * size_of(ring) + elements.ring_float32 * size_of(Dtype::float32);
  return architecture.state_space_layers() * buffer_len * entry;
}

std::int64_t conv_state_bytes(const Architecture& architecture, Dtype compute) {
  const std::int64_t layers = architecture.state_space_layers();
  if (layers == 0) return 0;
  return layers * architecture.conv_dim() * (architecture.conv_kernel - 1) * size_of(compute);
}

std::int64_t kv_bytes_per_token(const Architecture& architecture, Dtype compute) {
  const std::int64_t value_dim = architecture.value_head_dim == 0 ? architecture.head_dim : architecture.value_head_dim;
  return architecture.count(LayerKind::attention) * architecture.num_kv_heads * (architecture.head_dim + value_dim) *
         size_of(compute);
}

double exact_bytes_per_token(const Architecture& architecture, Dtype state, Dtype compute) {
  return static_cast<double>(2 * state_bytes(architecture, state) + input_output_bytes(architecture, compute));
}

double replay_bytes_per_token(const Architecture& architecture, RingForm form, std::int64_t buffer_len, Dtype state,
                              Dtype ring, Dtype compute) {
  const auto length = static_cast<double>(buffer_len);
  const auto entry = static_cast<double>(ring_bytes(architecture, form, 1, ring));
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
