#include "eval/cli/inspect_description.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "eval/checkpoint/float8_scales.h"
#include "eval/model/architecture.h"
#include "eval/model/footprint.h"
#include "eval/model/model.h"
#include "eval/model/step_weights.h"

namespace replayeval {
namespace {

using nlohmann::ordered_json;

std::string name_of(Dtype dtype) { return std::string(dtype_name(dtype)); }

// All that the predictions start from.
struct Subject {
  Architecture architecture;
  Dtype compute = Dtype::float32;
  WeightTotals totals;
  StepWeights step;
  InspectOptions options;
};

Subject look_at(const Checkpoint& checkpoint, const InspectOptions& options) {
  Subject subject;
  subject.architecture = describe_architecture(checkpoint);
  subject.compute = stored_dtype(checkpoint);
  ModelOptions model;
  model.compute_dtype = subject.compute;
  subject.totals = weight_totals(checkpoint, model);
  subject.step = step_weights(subject.totals, subject.architecture.vocab_size);
  subject.options = options;
  return subject;
}

// Parameters that one token's arithmetic uses: all but the experts that it does not choose.
std::int64_t active_parameters(const Subject& subject) {
  const MixtureShape& mixture = subject.architecture.mixture;
  const std::int64_t experts = subject.totals.expert_parameters;
  if (mixture.experts == 0) return subject.totals.parameters;
  return subject.totals.parameters - experts + experts / mixture.experts * mixture.chosen;
}

ordered_json describe_layers(const Architecture& architecture) {
  ordered_json layers = ordered_json::array();
  for (const LayerKind kind : architecture.layers) layers.push_back(layer_kind_name(kind));
  return layers;
}

ordered_json describe_tensors(const Checkpoint& checkpoint) {
  std::map<std::string, std::array<std::int64_t, 2>> totals;  // dtype -> tensors, bytes
  for (const auto& [name, view] : checkpoint.tensors()) {
    ++totals[view.dtype][0];
    totals[view.dtype][1] += static_cast<std::int64_t>(view.bytes.size());
  }
  ordered_json by_dtype = ordered_json::object();
  for (const auto& [dtype, total] : totals) by_dtype[dtype] = {{"tensors", total[0]}, {"bytes", total[1]}};
  return by_dtype;
}

ordered_json describe_parts(const Architecture& architecture) {
  ordered_json parts;
  parts["mamba2"] = {{"layers", architecture.count(LayerKind::mamba2)}, {"num_heads", architecture.mamba.num_heads},
                     {"num_groups", architecture.mamba.num_groups},     {"head_dim", architecture.mamba.head_dim},
                     {"state_size", architecture.mamba.state_size},     {"conv_kernel", architecture.conv_kernel}};
  parts["mamba2"]["norm_group_size"] = {{"published", architecture.norm_group_size.published},
                                        {"transformers", architecture.norm_group_size.transformers}};
  if (architecture.has_delta_rule())
    parts["delta_rule"] = {{"layers", architecture.state_space_layers()},
                           {"num_key_heads", architecture.delta.num_key_heads},
                           {"num_value_heads", architecture.delta.num_value_heads},
                           {"key_dim", architecture.delta.key_dim},
                           {"value_dim", architecture.delta.value_dim},
                           {"conv_kernel", architecture.conv_kernel}};
  parts["attention"] = {{"layers", architecture.count(LayerKind::attention)},
                        {"num_heads", architecture.num_heads},
                        {"num_kv_heads", architecture.num_kv_heads},
                        {"head_dim", architecture.head_dim}};
  const MixtureShape& mixture = architecture.mixture;
  if (mixture.experts != 0)
    parts["experts"] = {{"experts", mixture.experts},
                        {"chosen", mixture.chosen},
                        {"intermediate_size", mixture.intermediate_size},
                        {"shared_intermediate_size", mixture.shared_intermediate_size},
                        {"latent_size", mixture.latent_size}};
  return parts;
}

ordered_json describe_memory(const Architecture& architecture, std::int64_t context) {
  ordered_json memory;
  for (const Dtype dtype : inspected_states) {
    memory["state"][name_of(dtype)] = state_bytes(architecture, dtype);
    memory["conv_state"][name_of(dtype)] = conv_state_bytes(architecture, dtype);
    memory["kv_per_token"][name_of(dtype)] = kv_bytes_per_token(architecture, dtype);
    memory["kv"][name_of(dtype)] = kv_bytes_per_token(architecture, dtype) * context;
  }
  memory["kv_page_tokens"] = KeyValuePageOptions().page_length;
  for (const Dtype dtype : inspected_rings)
    for (const std::int64_t length : inspected_buffer_lens)
      memory["ring"][name_of(dtype)][std::to_string(length)] =
          ring_bytes(architecture, architecture.published_ring_form(), length, dtype);
  return memory;
}

// Of whole steps, replay / exact, by batch.
ordered_json step_ratios(const Subject& subject, double exact, double replay) {
  ordered_json ratios;
  for (const std::int64_t batch : inspected_batches) {
    const auto bytes = [&](double mixer) {
      return step_bytes(subject.architecture, subject.step, batch, mixer, subject.options.context, subject.compute);
    };
    ratios[std::to_string(batch)] = bytes(replay) / bytes(exact);
  }
  return ratios;
}

// One row per buffer length, state type and ring type.
ordered_json describe_traffic(const Subject& subject) {
  ordered_json rows = ordered_json::array();
  if (subject.architecture.state_space_layers() == 0) return rows;
  for (const std::int64_t length : inspected_buffer_lens)
    for (const Dtype state : inspected_states)
      for (const Dtype ring : inspected_rings) {
        const double exact = exact_bytes_per_token(subject.architecture, state, subject.compute);
        const double replay = replay_bytes_per_token(subject.architecture, subject.architecture.published_ring_form(),
                                                     length, state, ring, subject.compute);
        rows.push_back({{"buffer_len", length},
                        {"state", dtype_name(state)},
                        {"ring", dtype_name(ring)},
                        {"exact_bytes_per_token", exact},
                        {"replay_bytes_per_token", replay},
                        {"ratio", replay / exact},
                        {"step_ratio", step_ratios(subject, exact, replay)}});
      }
  return rows;
}

ordered_json describe_step(const Subject& subject) {
  ordered_json by_batch;
  for (const std::int64_t batch : inspected_batches)
    by_batch[std::to_string(batch)] = weight_bytes_per_step(subject.architecture, subject.step, batch);
  return {{"context", subject.options.context},
          {"dense_bytes", subject.step.dense},
          {"expert_bytes", subject.step.experts},
          {"weight_bytes_per_step", by_batch}};
}

std::int64_t weight_bytes(const WeightTotals& totals) {
  std::int64_t bytes = totals.embedding_bytes + totals.head_bytes;
  for (const std::int64_t layer : totals.layer_bytes) bytes += layer;
  return bytes;
}

// How many sequences of `context` tokens the memory holds beside the weights; activations are not counted.
ordered_json describe_fit(const Subject& subject) {
  const std::int64_t room = subject.options.memory - weight_bytes(subject.totals);
  const Architecture& architecture = subject.architecture;
  const std::int64_t common = conv_state_bytes(architecture, subject.compute) +
                              kv_bytes_per_token(architecture, subject.compute) * subject.options.context;
  const auto fit = [&](std::int64_t bytes) { return room <= 0 ? 0 : room / std::max<std::int64_t>(1, bytes); };
  ordered_json sequences;
  for (const Dtype state : inspected_states) {
    const std::int64_t exact = state_bytes(architecture, state) + common;
    sequences["exact"][name_of(state)] = fit(exact);
    for (const Dtype ring : inspected_rings)
      for (const std::int64_t length : inspected_buffer_lens)
        sequences["replay"][name_of(state)][name_of(ring)][std::to_string(length)] =
            fit(exact + ring_bytes(architecture, architecture.published_ring_form(), length, ring));
  }
  return {{"memory_bytes", subject.options.memory},
          {"weight_bytes", weight_bytes(subject.totals)},
          {"context", subject.options.context},
          {"sequences", sequences}};
}

// Of `config`, whose keys are called `path` + key, what nobody knows. An object whose own keys are accounted for is
// looked into.
void collect_unknown(const nlohmann::json& config, const std::string& path, const std::set<std::string>& known,
                     std::vector<std::string>& unknown) {
  for (const auto& [key, value] : config.items()) {
    const std::string name = path + key, inside = name + ".";
    const auto first_inside = known.lower_bound(inside);
    if (value.is_object() && first_inside != known.end() && first_inside->starts_with(inside))
      collect_unknown(value, inside, known, unknown);
    else if (!known.contains(name))
      unknown.push_back(name);
  }
}

ordered_json describe_keys(const Checkpoint& checkpoint, const Architecture& architecture) {
  std::set<std::string> known(architecture.keys_read.begin(), architecture.keys_read.end());
  known.insert(architecture.keys_ignored.begin(), architecture.keys_ignored.end());
  std::vector<std::string> unknown;
  collect_unknown(checkpoint.config(), "", known, unknown);
  return {{"read", architecture.keys_read}, {"ignored", architecture.keys_ignored}, {"unknown", unknown}};
}

}  // namespace

ordered_json describe_checkpoint(const Checkpoint& checkpoint, const InspectOptions& options) {
  const Subject subject = look_at(checkpoint, options);
  const Architecture& architecture = subject.architecture;
  ordered_json out;
  out["checkpoint"] = checkpoint.folder().string();
  out["has_weights"] = checkpoint.has_weights();
  if (options.hash) out["sha256"] = checkpoint.sha256();
  out["model_type"] = architecture.model_type;
  out["parameters"] = subject.totals.parameters;
  out["active_parameters"] = active_parameters(subject);
  out["weight_bytes"] = weight_bytes(subject.totals);
  out["tensors"] = describe_tensors(checkpoint);
  out["ignored_tensors"] = activation_scales(checkpoint);
  out["layers"] = describe_layers(architecture);
  out["vocab_size"] = architecture.vocab_size;
  out["hidden_size"] = architecture.hidden_size;
  out["intermediate_size"] = architecture.intermediate_size;
  out["max_positions"] = architecture.max_positions;
  out.update(describe_parts(architecture));
  out["bytes_per_sequence"] = describe_memory(architecture, options.context);
  out["step"] = describe_step(subject);
  out["traffic"] = {{"compute_dtype", dtype_name(subject.compute)}, {"rows", describe_traffic(subject)}};
  out["fit"] = describe_fit(subject);
  out["config_keys"] = describe_keys(checkpoint, architecture);
  return out;
}

}  // namespace replayeval
