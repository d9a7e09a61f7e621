#include "eval/model/nemotron_h.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <memory>
#include <stdexcept>

#include "eval/executors/device.h"
#include "eval/model/blocks.h"
#include "eval/model/hybrid_cache.h"
#include "eval/model/layers.h"
#include "eval/model/nemotron_h_config.h"
#include "eval/model/token_ids.h"
#include "eval/model/weights.h"

namespace replayeval {
namespace {

struct Layer {
  at::Tensor norm_weight;  // [hidden_size] float32
  std::unique_ptr<Block> block;
};

class NemotronH : public Model {
 public:
  NemotronH(const Checkpoint& checkpoint, const ModelOptions& options);

  const std::string& model_type() const override { return config_.architecture.model_type; }
  std::int64_t vocab_size() const override { return config_.architecture.vocab_size; }
  std::int64_t hidden_size() const override { return config_.architecture.hidden_size; }
  std::int64_t max_positions() const override { return config_.architecture.max_positions; }
  std::int64_t parameter_count() const override { return parameter_count_; }
  const ModelOptions& options() const override { return options_; }
  const std::vector<Mamba2Mixer>& mixers() const override { return mixers_; }
  const std::vector<std::int64_t>& mixer_layers() const override { return mixer_layers_; }

  std::unique_ptr<DecodeCache> make_cache(const std::vector<Arm>& arms, std::int64_t slots,
                                          std::int64_t capacity) const override;
  at::Tensor forward(const at::Tensor& ids, DecodeCache& cache, Mode mode, KernelClock* clock,
                     MixerTap* tap) const override;
  at::Tensor logits(const at::Tensor& hidden) const override;

 private:
  void load_layer(WeightLoader& weights, std::int64_t index);
  std::unique_ptr<Block> load_mamba(WeightLoader& weights, const std::string& name, std::int64_t index);
  std::unique_ptr<Block> load_attention(WeightLoader& weights, const std::string& name);
  std::unique_ptr<Block> load_mlp(WeightLoader& weights, const std::string& name) const;
  void load_head(WeightLoader& weights, const Checkpoint& checkpoint);
  Linear load_linear(WeightLoader& weights, const std::string& name, std::int64_t out, std::int64_t in,
                     bool bias) const;

  at::Tensor run_block(const at::Tensor& ids, HybridCache& cache, KernelClock* clock, MixerTap* tap) const;

  NemotronHConfig config_;
  ModelOptions options_;
  at::Device device_;
  at::ScalarType compute_;
  at::Tensor embeddings_;  // [vocab, hidden], compute dtype
  std::vector<Layer> layers_;
  at::Tensor final_norm_;  // [hidden] float32
  at::Tensor head_;        // [vocab, hidden]; see logits()
  std::vector<Mamba2Mixer> mixers_;
  std::vector<std::int64_t> mixer_layers_;
  std::int64_t attention_layers_ = 0;
  std::int64_t parameter_count_ = 0;
};

// Products in the types that their operands have and with float32 sums, on every device.
void forbid_reduced_precision() {
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  at::globalContext().setAllowFP16ReductionCuBLAS(false);
}

NemotronH::NemotronH(const Checkpoint& checkpoint, const ModelOptions& options)
    : config_(read_nemotron_h_config(checkpoint)),
      options_(options),
      device_(torch_device(options.device)),
      compute_(scalar_type(options.compute_dtype)) {
  forbid_reduced_precision();
  // `backbone.` is how the folders are published and what transformers saves; `model.` is its name inside transformers.
  WeightLoader weights(checkpoint, device_, {"backbone.", "model."}, "embeddings.weight");
  embeddings_ = weights.load("embeddings.weight", {vocab_size(), hidden_size()}, compute_);
  for (std::size_t i = 0; i < config_.architecture.layers.size(); ++i)
    load_layer(weights, static_cast<std::int64_t>(i));
  final_norm_ = weights.load("norm_f.weight", {hidden_size()}, at::kFloat);
  load_head(weights, checkpoint);
  weights.finish({"mtp."});  // multi-token prediction heads are not part of the model proper
  parameter_count_ = weights.parameter_count();
}

Linear NemotronH::load_linear(WeightLoader& weights, const std::string& name, std::int64_t out, std::int64_t in,
                              bool bias) const {
  return {weights.load(name + ".weight", {out, in}, compute_),
          bias ? weights.load(name + ".bias", {out}, compute_) : at::Tensor()};
}

void NemotronH::load_layer(WeightLoader& weights, std::int64_t index) {
  const std::string name = "layers." + std::to_string(index);
  Layer layer;
  layer.norm_weight = weights.load(name + ".norm.weight", {hidden_size()}, at::kFloat);
  switch (config_.architecture.layers[static_cast<std::size_t>(index)]) {
    case LayerKind::mamba2:
      layer.block = load_mamba(weights, name + ".mixer", index);
      break;
    case LayerKind::attention:
      layer.block = load_attention(weights, name + ".mixer");
      break;
    case LayerKind::mlp:
      layer.block = load_mlp(weights, name + ".mixer");
      break;
  }
  layers_.push_back(std::move(layer));
}

std::unique_ptr<Block> NemotronH::load_mamba(WeightLoader& weights, const std::string& name, std::int64_t index) {
  const Architecture& architecture = config_.architecture;
  const std::int64_t heads = architecture.mamba.num_heads, inner = heads * architecture.mamba.head_dim;
  const std::int64_t channels = architecture.conv_dim();
  Mamba2Mixer mixer;
  mixer.shape = architecture.mamba;
  mixer.conv_kernel = architecture.conv_kernel;
  mixer.conv_weight = weights.load(name + ".conv1d.weight", {channels, 1, mixer.conv_kernel}, at::kFloat).squeeze(1);
  if (config_.use_conv_bias) mixer.conv_bias = weights.load(name + ".conv1d.bias", {channels}, at::kFloat);
  mixer.A_log = weights.load(name + ".A_log", {heads}, at::kFloat);
  mixer.D = weights.load(name + ".D", {heads}, at::kFloat);
  mixer.dt_bias = weights.load(name + ".dt_bias", {heads}, at::kFloat);
  const bool published = options_.dt_floor == DtFloor::published;
  mixer.dt_min = static_cast<float>(published ? config_.time_step_limit_min : config_.time_step_min);
  mixer.dt_max = published ? static_cast<float>(config_.time_step_limit_max) : std::numeric_limits<float>::infinity();
  mixer.norm_weight = weights.load(name + ".norm.weight", {inner}, at::kFloat);
  mixer.norm_group_size = inner / mixer.shape.num_groups;
  mixer.norm_eps = static_cast<float>(config_.norm_eps);
  MambaWeights dense;
  dense.in_proj = load_linear(weights, name + ".in_proj", mixer.projection_size(), hidden_size(), config_.use_bias);
  dense.out_proj = load_linear(weights, name + ".out_proj", hidden_size(), inner, config_.use_bias);
  mixers_.push_back(std::move(mixer));
  mixer_layers_.push_back(index);
  return std::make_unique<MambaBlock>(std::move(dense), mixers_, mixers_.size() - 1);
}

std::unique_ptr<Block> NemotronH::load_attention(WeightLoader& weights, const std::string& name) {
  const Architecture& architecture = config_.architecture;
  const std::int64_t query = architecture.num_heads * architecture.head_dim;
  const std::int64_t key = architecture.num_kv_heads * architecture.head_dim;
  AttentionWeights dense;
  dense.q_proj = load_linear(weights, name + ".q_proj", query, hidden_size(), false);
  dense.k_proj = load_linear(weights, name + ".k_proj", key, hidden_size(), false);
  dense.v_proj = load_linear(weights, name + ".v_proj", key, hidden_size(), false);
  dense.o_proj = load_linear(weights, name + ".o_proj", hidden_size(), query, false);
  return std::make_unique<AttentionBlock>(std::move(dense), static_cast<std::size_t>(attention_layers_++));
}

std::unique_ptr<Block> NemotronH::load_mlp(WeightLoader& weights, const std::string& name) const {
  const std::int64_t inner = config_.architecture.intermediate_size;
  MlpWeights dense;
  dense.up_proj = load_linear(weights, name + ".up_proj", inner, hidden_size(), config_.mlp_bias);
  dense.down_proj = load_linear(weights, name + ".down_proj", hidden_size(), inner, config_.mlp_bias);
  return std::make_unique<SquaredReluMlpBlock>(std::move(dense));
}

void NemotronH::load_head(WeightLoader& weights, const Checkpoint& checkpoint) {
  const std::string name = "lm_head.weight";
  if (weights.has_unprefixed(name))
    head_ = weights.load_unprefixed(name, {vocab_size(), hidden_size()}, compute_);
  else if (config_.tie_word_embeddings)
    head_ = embeddings_;
  else
    throw CheckpointError(checkpoint.folder().string() + ": tensor \"" + name +
                          "\" is missing from the weights; expected it, as config.json does not tie the embeddings");
  if (device_.is_cpu()) head_ = head_.to(at::kFloat);  // see logits()
}

std::unique_ptr<DecodeCache> NemotronH::make_cache(const std::vector<Arm>& arms, std::int64_t slots,
                                                   std::int64_t capacity) const {
  const HybridCacheShape shape{attention_layers_, config_.architecture.num_kv_heads, config_.architecture.head_dim,
                               compute_, device_};
  return std::make_unique<HybridCache>(arms, mixers_, shape, slots, capacity);
}

at::Tensor NemotronH::forward(const at::Tensor& ids, DecodeCache& cache, Mode mode, KernelClock* clock,
                              MixerTap* tap) const {
  const c10::NoGradGuard no_gradients;
  auto& hybrid = dynamic_cast<HybridCache&>(cache);
  check_token_ids(ids, vocab_size(), hybrid);
  const at::Tensor there = ids.to(device_);
  if (mode == Mode::teacher_forced) return run_block(there, hybrid, clock, tap);
  std::vector<at::Tensor> steps;
  for (std::int64_t t = 0; t < ids.size(1); ++t) steps.push_back(run_block(there.narrow(1, t, 1), hybrid, clock, tap));
  return at::cat(steps, 2);
}

at::Tensor NemotronH::run_block(const at::Tensor& ids, HybridCache& cache, KernelClock* clock, MixerTap* tap) const {
  const Step step{cache, ids.size(0), ids.size(1), clock, tap};
  at::Tensor residual;  // [arms, B * T, hidden]
  {
    const KernelClock::Scope scope(clock, "", "embedding");
    residual = at::embedding(embeddings_, ids.flatten()).unsqueeze(0).repeat({cache.num_arms(), 1, 1});
  }
  for (const Layer& layer : layers_) {
    at::Tensor x;
    {
      const KernelClock::Scope scope(clock, "", "norm");
      x = rms_norm(residual.to(compute_), layer.norm_weight, config_.norm_eps, compute_);
    }
    x = layer.block->run(x, step);
    const KernelClock::Scope scope(clock, "", "norm");
    if (config_.residual_in_fp32) residual = residual.to(at::kFloat);
    residual = add_residual(residual, x);
  }
  cache.advance(step.tokens);
  const KernelClock::Scope scope(clock, "", "norm");
  return rms_norm(residual, final_norm_, config_.norm_eps, compute_)
      .view({cache.num_arms(), step.batch, step.tokens, hidden_size()});
}

// Float32 sums of exact products, never rounded to the compute dtype. On CUDA 16-bit operands give float32 results in
// one product; ATen has no such product on the CPU, where the head is therefore kept in float32.
at::Tensor NemotronH::logits(const at::Tensor& hidden) const {
  const c10::NoGradGuard no_gradients;
  if (hidden.size(-1) != hidden_size())
    throw std::invalid_argument("hidden: last size " + std::to_string(hidden.size(-1)) + "; expected " +
                                std::to_string(hidden_size()));
  if (head_.scalar_type() == at::kFloat) {
    const at::Tensor wide = hidden.to(at::kFloat);
    // The first of several indices is the arm: see layers.h.
    return hidden.dim() > 2 ? linear(wide, {head_, {}}) : linear(wide.unsqueeze(0), {head_, {}}).squeeze(0);
  }
  const at::Tensor rows = hidden.reshape({-1, hidden_size()});
  std::vector<std::int64_t> shape(hidden.sizes().begin(), hidden.sizes().end());
  shape.back() = vocab_size();
  return at::mm(rows, head_.t(), at::kFloat).view(shape);
}

}  // namespace

Architecture describe_nemotron_h(const Checkpoint& checkpoint) {
  return read_nemotron_h_config(checkpoint).architecture;
}

std::unique_ptr<Model> load_nemotron_h(const Checkpoint& checkpoint, const ModelOptions& options) {
  return std::make_unique<NemotronH>(checkpoint, options);
}

}  // namespace replayeval
