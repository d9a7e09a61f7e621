#include "eval/model/zamba2.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "eval/model/hybrid_builder.h"
#include "eval/model/zamba2_config.h"
#include "eval/model/zamba2_layer.h"

namespace replayeval {
namespace {

constexpr double mixer_norm_eps = 1e-5;  // whatever rms_norm_eps says

MambaForm mamba_form(const Zamba2Config& config, DtFloor floor) {
  const bool published = floor == DtFloor::published;
  MambaForm form;
  form.use_bias = config.add_bias_linear;
  form.use_conv_bias = true;
  form.dt_min = static_cast<float>(published ? config.time_step_limit.min : config.time_step_min);
  form.dt_max = published ? static_cast<float>(config.time_step_limit.max) : std::numeric_limits<float>::infinity();
  form.norm_group_size = config.architecture.norm_group_size.published;
  form.norm_eps = mixer_norm_eps;
  return form;
}

AttentionForm attention_form(const Zamba2Config& config, const at::Device& device) {
  const Architecture& architecture = config.architecture;
  AttentionForm form;
  form.num_heads = architecture.num_heads;
  form.num_kv_heads = architecture.num_kv_heads;
  form.head_dim = architecture.head_dim;
  form.scale = 1.0 / std::sqrt(static_cast<double>(architecture.head_dim) / 2.0);
  if (config.rotary) form.rotary = make_rotary(*config.rotary, device);
  return form;
}

// Loads the model layer by layer; keeps the shared blocks.
class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const Zamba2Config& config, const ModelOptions& options)
      : checkpoint_(checkpoint),
        config_(config),
        floor_(options.dt_floor),
        builder_(checkpoint, config.architecture, options, {"model."}, "embed_tokens.weight") {}

  std::unique_ptr<Model> load();

 private:
  static std::string layer_name(std::size_t layer) { return "layers." + std::to_string(layer); }

  void add_layer(std::size_t layer);
  void add_hybrid_layer(std::size_t layer);
  // The block of hybrid layer number `use`, under the name of the first layer that uses it, on the present device.
  std::shared_ptr<const SharedBlock> shared_block(std::size_t use);
  std::shared_ptr<const SharedBlock> load_shared_block(const std::string& name);
  Adapter adapter(const std::string& name, std::int64_t out, std::int64_t in);
  SharedBlockUse load_use(std::size_t use, std::size_t layer);
  Norm wide_norm(const std::string& name);
  std::string block_name(std::size_t use) const;

  // Prefixes of shared blocks that are stored once more, under a later layer that uses them. Throws CheckpointError
  // where such a copy differs from the one that was loaded.
  std::vector<std::string> check_repeats() const;

  const Checkpoint& checkpoint_;
  const Zamba2Config& config_;
  DtFloor floor_;
  HybridBuilder builder_;
  std::vector<std::size_t> hybrid_layers_;                                                    // so far
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const SharedBlock>> blocks_;  // by name and device
};

std::string Loader::block_name(std::size_t use) const {
  const auto blocks = static_cast<std::size_t>(config_.num_mem_blocks);
  return layer_name(hybrid_layers_[use % blocks]) + ".shared_transformer";
}

Adapter Loader::adapter(const std::string& name, std::int64_t out, std::int64_t in) {
  return {builder_.linear(name + ".0", config_.adapter_rank, in, false),
          builder_.linear(name + ".1", out, config_.adapter_rank, false)};
}

Norm Loader::wide_norm(const std::string& name) {
  const std::int64_t width = 2 * config_.architecture.hidden_size;
  return {builder_.weights().load(name + ".weight", {width}, at::kFloat), config_.norm_eps};
}

std::shared_ptr<const SharedBlock> Loader::load_shared_block(const std::string& name) {
  const Architecture& architecture = config_.architecture;
  const std::int64_t hidden = architecture.hidden_size, inner = architecture.intermediate_size;
  const std::int64_t query = architecture.num_heads * architecture.head_dim;
  const std::int64_t key = architecture.num_kv_heads * architecture.head_dim;
  const bool bias = config_.add_bias_linear;
  auto block = std::make_shared<SharedBlock>();
  block->input_norm = wide_norm(name + ".input_layernorm");
  block->q_proj = builder_.linear(name + ".self_attn.q_proj", query, 2 * hidden, false);
  block->k_proj = builder_.linear(name + ".self_attn.k_proj", key, 2 * hidden, false);
  block->v_proj = builder_.linear(name + ".self_attn.v_proj", key, 2 * hidden, false);
  block->o_proj = builder_.linear(name + ".self_attn.o_proj", hidden, query, false);
  block->mlp_norm = builder_.norm(name + ".pre_ff_layernorm", config_.norm_eps);
  block->gate_up_proj = builder_.linear(name + ".feed_forward.gate_up_proj", 2 * inner, hidden, bias);
  block->down_proj = builder_.linear(name + ".feed_forward.down_proj", hidden, inner, bias);
  block->attention = attention_form(config_, builder_.device());
  block->activation = config_.hidden_act;
  return block;
}

std::shared_ptr<const SharedBlock> Loader::shared_block(std::size_t use) {
  const std::string name = block_name(use);
  std::shared_ptr<const SharedBlock>& block = blocks_[{name, builder_.device().str()}];
  if (block == nullptr) block = load_shared_block(name);
  return block;
}

// A block holds the adapters of all of its uses, numbered by the model's hybrid layers.
SharedBlockUse Loader::load_use(std::size_t use, std::size_t layer) {
  const Architecture& architecture = config_.architecture;
  const std::int64_t hidden = architecture.hidden_size, wide = 2 * hidden;
  const std::string block = block_name(use), number = std::to_string(use);
  SharedBlockUse own;
  if (config_.use_shared_attention_adapter) {
    own.q_adapter = adapter(block + ".self_attn.linear_q_adapter_list." + number, wide, wide);
    own.k_adapter = adapter(block + ".self_attn.linear_k_adapter_list." + number, wide, wide);
    own.v_adapter = adapter(block + ".self_attn.linear_v_adapter_list." + number, wide, wide);
  }
  own.gate_up_adapter =
      adapter(block + ".feed_forward.gate_up_proj_adapter_list." + number, 2 * architecture.intermediate_size, hidden);
  own.linear = builder_.linear(layer_name(layer) + ".linear", hidden, hidden, false);
  own.attention_index = builder_.add_attention_cache(
      {architecture.num_kv_heads, architecture.head_dim, architecture.head_dim, builder_.device()});
  return own;
}

void Loader::add_hybrid_layer(std::size_t layer) {
  const std::size_t use = hybrid_layers_.size();
  hybrid_layers_.push_back(layer);
  const std::string name = layer_name(layer) + ".mamba_decoder";
  std::shared_ptr<const SharedBlock> block = shared_block(use);
  SharedBlockUse own = load_use(use, layer);
  Norm norm = builder_.norm(name + ".input_layernorm", config_.norm_eps);
  builder_.add(std::make_unique<SharedBlockLayer>(std::move(block), std::move(own), std::move(norm),
                                                  builder_.mamba(name + ".mamba", mamba_form(config_, floor_)),
                                                  builder_.compute_dtype()));
}

void Loader::add_layer(std::size_t layer) {
  builder_.begin_layer(static_cast<std::int64_t>(layer));
  if (config_.architecture.layers[layer] == LayerKind::mamba2_attention) return add_hybrid_layer(layer);
  const std::string name = layer_name(layer);
  std::unique_ptr<Block> mixer = builder_.mamba(name + ".mamba", mamba_form(config_, floor_));
  builder_.add(name + ".input_layernorm", config_.norm_eps, std::move(mixer));
}

std::vector<std::string> Loader::check_repeats() const {
  std::vector<std::string> repeats;
  if (!checkpoint_.has_weights()) return repeats;
  const auto& tensors = checkpoint_.tensors();
  for (std::size_t use = static_cast<std::size_t>(config_.num_mem_blocks); use < hybrid_layers_.size(); ++use) {
    const std::string prefix = "model." + layer_name(hybrid_layers_[use]) + ".shared_transformer.";
    const std::string first = "model." + block_name(use) + ".";
    repeats.push_back(prefix);
    for (auto at = tensors.lower_bound(prefix); at != tensors.end() && at->first.starts_with(prefix); ++at) {
      const auto original = tensors.find(first + at->first.substr(prefix.size()));
      if (original == tensors.end() || original->second.dtype != at->second.dtype ||
          !std::ranges::equal(original->second.bytes, at->second.bytes))
        throw CheckpointError(at->second.file.string() + ": tensor \"" + at->first +
                              "\" belongs to a block that is shared; expected a copy of the one under \"" + first +
                              "\", or none");
    }
  }
  return repeats;
}

std::unique_ptr<Model> Loader::load() {
  builder_.embeddings("embed_tokens");
  for (std::size_t layer = 0; layer < config_.architecture.layers.size(); ++layer) add_layer(layer);
  builder_.finish("final_layernorm", config_.norm_eps, "lm_head", config_.tie_word_embeddings);
  return builder_.build(check_repeats());
}

}  // namespace

Architecture describe_zamba2(const Checkpoint& checkpoint) { return read_zamba2_config(checkpoint).architecture; }

std::unique_ptr<Model> load_zamba2(const Checkpoint& checkpoint, const ModelOptions& options) {
  const Zamba2Config config = read_zamba2_config(checkpoint);
  return Loader(checkpoint, config, options).load();
}

}  // namespace replayeval
