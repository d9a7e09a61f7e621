#include "eval/model/hybrid_builder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "eval/executors/device.h"
#include "eval/executors/mamba2_mixer.h"

namespace replayeval {
namespace {

// Products in the types that their operands have and with float32 sums, on every device.
void forbid_reduced_precision() {
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  at::globalContext().setAllowFP16ReductionCuBLAS(false);
  // cuDNN's attention plans anew, for some 45 ms, at every new number of keys: at each token of a decode.
  at::globalContext().setSDPUseCuDNN(false);
}

// [projection_size] float32 on `device`; undefined where all five are 1.
at::Tensor projection_multiplier(const mamba2::Shape& shape, const std::array<double, 5>& multipliers,
                                 const at::Device& device) {
  if (std::all_of(multipliers.begin(), multipliers.end(), [](double multiplier) { return multiplier == 1.0; }))
    return {};
  const std::int64_t inner = shape.num_heads * shape.head_dim, group = shape.num_groups * shape.state_size;
  const std::array<std::int64_t, 5> widths = {inner, inner, group, group, shape.num_heads};
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < widths.size(); ++i)
    parts.push_back(at::full({widths[i]}, multipliers[i], at::TensorOptions().dtype(at::kFloat)));
  return at::cat(parts).to(device);
}

}  // namespace

HybridBuilder::HybridBuilder(const Checkpoint& checkpoint, Architecture architecture, const ModelOptions& options,
                             const std::vector<std::string>& prefixes, const std::string& probe)
    : options_(options),
      device_(options.placement ? options.placement->embeddings : torch_device(options.device)),
      compute_(scalar_type(options.compute_dtype)),
      weights_(checkpoint, device_, prefixes, probe, options.random_seed),
      folder_(checkpoint.folder().string()) {
  forbid_reduced_precision();
  parts_.architecture = std::move(architecture);
}

void HybridBuilder::move_to(const at::Device& device) {
  device_ = device;
  weights_.set_device(device);
}

std::int64_t HybridBuilder::bytes_since_mark() {
  const std::int64_t before = marked_bytes_;
  marked_bytes_ = weights_.byte_count();
  return marked_bytes_ - before;
}

void HybridBuilder::close_layer() {
  const std::int64_t bytes = bytes_since_mark();
  if (layer_ < 0) return;
  parts_.totals.layer_bytes.resize(parts_.architecture.layers.size());
  parts_.totals.layer_bytes[static_cast<std::size_t>(layer_)] += bytes;
}

void HybridBuilder::begin_layer(std::int64_t index) {
  close_layer();
  layer_ = index;
  if (options_.placement) move_to(options_.placement->layers.at(static_cast<std::size_t>(index)));
}

Linear HybridBuilder::linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
  return {weights_.load(name + ".weight", {out, in}, compute_),
          bias ? weights_.load(name + ".bias", {out}, compute_) : at::Tensor()};
}

Norm HybridBuilder::norm(const std::string& name, double eps, std::int64_t width) {
  at::Tensor weight =
      weights_.load(name + ".weight", {width == 0 ? parts_.architecture.hidden_size : width}, at::kFloat);
  return {norm_offset_ == 0.0 ? std::move(weight) : weight.add(norm_offset_), eps};
}

MixerConv HybridBuilder::conv(const std::string& name, std::int64_t channels, bool bias) {
  MixerConv conv;
  conv.conv_kernel = parts_.architecture.conv_kernel;
  conv.weight = weights_.load(name + ".weight", {channels, 1, conv.conv_kernel}, at::kFloat).squeeze(1);
  if (bias) conv.bias = weights_.load(name + ".bias", {channels}, at::kFloat);
  return conv;
}

std::size_t HybridBuilder::add_mixer(std::shared_ptr<const Mixer> mixer) {
  parts_.mixers.push_back(std::move(mixer));
  parts_.mixer_layers.push_back(layer_);
  return parts_.mixers.size() - 1;
}

std::unique_ptr<Block> HybridBuilder::mamba(const std::string& name, const MambaForm& form) {
  const mamba2::Shape& shape = parts_.architecture.mamba;
  const MixerSizes sizes = mamba2_sizes(shape);
  const std::int64_t hidden = parts_.architecture.hidden_size;
  MixerConv conv = this->conv(name + ".conv1d", sizes.conv_dim, form.use_conv_bias);
  Mamba2Weights weights;
  weights.A_log = weights_.load(name + ".A_log", {shape.num_heads}, at::kFloat);
  weights.D = weights_.load(name + ".D", {shape.num_heads}, at::kFloat);
  weights.dt_bias = weights_.load(name + ".dt_bias", {shape.num_heads}, at::kFloat);
  weights.dt_min = form.dt_min;
  weights.dt_max = form.dt_max;
  MixerNorm norm;
  norm.form = form.gate;
  if (form.gate != GateForm::gate_only) norm.weight = weights_.load(name + ".norm.weight", {sizes.inner()}, at::kFloat);
  norm.group_size = form.norm_group_size;
  norm.eps = static_cast<float>(form.norm_eps);
  MambaWeights dense;
  const std::int64_t input = form.input_size == 0 ? hidden : form.input_size;
  dense.in_proj = linear(name + ".in_proj", sizes.projection, input, form.use_bias);
  dense.out_proj = linear(name + ".out_proj", hidden, sizes.inner(), form.out_bias.value_or(form.use_bias));
  dense.projection_multiplier = projection_multiplier(shape, form.projection_multipliers, device_);
  auto mixer = std::make_shared<const Mamba2Mixer>(shape, std::move(conv), std::move(norm), std::move(weights));
  const std::size_t index = add_mixer(mixer);
  return std::make_unique<MambaBlock>(std::move(dense), std::move(mixer), index);
}

std::unique_ptr<Block> HybridBuilder::attention(const std::string& name, const AttentionForm& form, bool qkv_bias,
                                                bool o_bias) {
  const std::int64_t hidden = parts_.architecture.hidden_size;
  const std::int64_t query = form.num_heads * form.head_dim, key = form.num_kv_heads * form.head_dim;
  AttentionWeights dense;
  dense.q_proj = linear(name + ".q_proj", query, hidden, qkv_bias);
  dense.k_proj = linear(name + ".k_proj", key, hidden, qkv_bias);
  dense.v_proj = linear(name + ".v_proj", key, hidden, qkv_bias);
  dense.o_proj = linear(name + ".o_proj", hidden, query, o_bias);
  const std::size_t index = add_attention_cache({form.num_kv_heads, form.head_dim, form.head_dim, device_});
  return std::make_unique<AttentionBlock>(std::move(dense), form, index);
}

std::unique_ptr<Block> HybridBuilder::gated_mlp(const std::string& name, const GatedMlpForm& form, bool bias,
                                                std::int64_t inner) {
  const std::int64_t hidden = parts_.architecture.hidden_size;
  if (inner == 0) inner = parts_.architecture.intermediate_size;
  GatedMlpWeights weights;
  weights.gate_proj = linear(name + ".gate_proj", inner, hidden, bias);
  weights.up_proj = linear(name + ".up_proj", inner, hidden, bias);
  weights.down_proj = linear(name + ".down_proj", hidden, inner, bias);
  return std::make_unique<GatedMlpBlock>(std::move(weights), form);
}

std::size_t HybridBuilder::add_attention_cache(const KeyValueShape& shape) {
  parts_.attention.push_back(shape);
  return parts_.attention.size() - 1;
}

void HybridBuilder::add(std::unique_ptr<Layer> layer) { parts_.layers.push_back({device_, std::move(layer)}); }

void HybridBuilder::add(const std::string& norm_name, double eps, std::unique_ptr<Block> block, Residual residual) {
  add(std::make_unique<PreNormLayer>(norm(norm_name, eps), std::move(block), compute_, residual));
}

void HybridBuilder::add_post_norm(const std::string& norm_name, double eps, std::unique_ptr<Block> block) {
  add(std::make_unique<PostNormLayer>(norm(norm_name, eps), std::move(block), compute_));
}

void HybridBuilder::embeddings(const std::string& name, double multiplier) {
  const Architecture& architecture = parts_.architecture;
  close_layer();
  parts_.embeddings = weights_.load(name + ".weight", {architecture.vocab_size, architecture.hidden_size}, compute_);
  parts_.embedding_multiplier = multiplier;
  parts_.totals.embedding_bytes = bytes_since_mark();
}

void HybridBuilder::finish(const std::string& norm_name, double eps, const std::string& head_name, bool tied,
                           double logits_multiplier) {
  const Architecture& architecture = parts_.architecture;
  const std::string name = head_name + ".weight";
  const bool own_head = weights_.has_unprefixed(name, /*otherwise=*/!tied);
  close_layer();
  if (!own_head && !tied)
    throw CheckpointError(folder_ + ": tensor \"" + name +
                          "\" is missing from the weights; expected it, as config.json does not tie the embeddings");
  // A tied head stays where the embeddings are: it is the same memory.
  if (options_.placement) move_to(own_head ? options_.placement->head : options_.placement->embeddings);
  parts_.final_norm = norm(norm_name, eps);
  parts_.head = own_head ? weights_.load_unprefixed(name, {architecture.vocab_size, architecture.hidden_size}, compute_)
                         : parts_.embeddings;
  parts_.totals.tied_head = !own_head;
  parts_.totals.head_bytes = bytes_since_mark();
  if (device_.is_cpu()) parts_.head = parts_.head.to(at::kFloat);  // see HybridModel::logits()
  parts_.logits_multiplier = logits_multiplier;
}

std::unique_ptr<Model> HybridBuilder::build(const std::vector<std::string>& skipped) {
  weights_.finish(skipped);
  parts_.totals.parameters = weights_.parameter_count();
  parts_.totals.expert_parameters = weights_.expert_parameter_count();
  parts_.totals.expert_bytes = weights_.expert_byte_count();
  return make_hybrid_model(std::move(parts_), options_);
}

}  // namespace replayeval
