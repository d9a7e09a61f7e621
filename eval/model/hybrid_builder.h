// Puts a model together from a checkpoint's tensors, piece by piece, in the order of its layers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/model/gated_mlp.h"
#include "eval/model/hybrid_model.h"
#include "eval/model/mamba_form.h"
#include "eval/model/weights.h"

namespace replayeval {

class HybridBuilder {
 public:
  // Names are looked up behind the first of `prefixes` under which `probe` exists. Throws CheckpointError if under
  // none.
  HybridBuilder(const Checkpoint& checkpoint, Architecture architecture, const ModelOptions& options,
                const std::vector<std::string>& prefixes, const std::string& probe);

  const Architecture& architecture() const { return parts_.architecture; }
  at::ScalarType compute_dtype() const { return compute_; }
  const at::Device& device() const { return device_; }  // of the layer being built
  WeightLoader& weights() { return weights_; }

  // What follows belongs to layer `index` of architecture().layers, and goes where ModelOptions::placement has it.
  void begin_layer(std::int64_t index);

  Linear linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias);  // name.weight, name.bias
  // name.weight, [width or hidden_size]; 1 + name.weight once zero_centre_norms() was called.
  Norm norm(const std::string& name, double eps, std::int64_t width = 0);
  void zero_centre_norms() { norm_offset_ = 1.0; }

  // name.weight as [channels, conv_kernel], name.bias.
  MixerConv conv(const std::string& name, std::int64_t channels, bool bias);
  // Registers a mixer of the layer being built; returns its index.
  std::size_t add_mixer(std::shared_ptr<const Mixer> mixer);
  // Tensors under `name.`: in_proj, conv1d, A_log, D, dt_bias, norm (unless gate_only), out_proj.
  std::unique_ptr<Block> mamba(const std::string& name, const MambaForm& form);
  // q_proj, k_proj, v_proj, o_proj under `name.`.
  std::unique_ptr<Block> attention(const std::string& name, const AttentionForm& form, bool qkv_bias, bool o_bias);
  // gate_proj, up_proj, down_proj under `name.`, of `inner` or, if that is 0, architecture().intermediate_size.
  std::unique_ptr<Block> gated_mlp(const std::string& name, const GatedMlpForm& form, bool bias,
                                   std::int64_t inner = 0);
  // Registers a cache of its own for an attention block; returns its index.
  std::size_t add_attention_cache(const KeyValueShape& shape);

  void add(std::unique_ptr<Layer> layer);
  // PreNormLayer of the norm under `norm_name`.
  void add(const std::string& norm_name, double eps, std::unique_ptr<Block> block, Residual residual = {});
  // PostNormLayer of the norm under `norm_name`.
  void add_post_norm(const std::string& norm_name, double eps, std::unique_ptr<Block> block);

  void embeddings(const std::string& name, double multiplier = 1.0);
  // The final norm and the head: `head_name` (without prefix) if it exists, else, if `tied`, the embeddings. Throws
  // CheckpointError if it is missing and not tied.
  void finish(const std::string& norm_name, double eps, const std::string& head_name, bool tied,
              double logits_multiplier = 1.0);
  // Refuses tensors that no one asked for, except under the `skipped` prefixes.
  std::unique_ptr<Model> build(const std::vector<std::string>& skipped = {});

 private:
  void move_to(const at::Device& device);
  std::int64_t bytes_since_mark();  // loaded since the call before
  void close_layer();

  HybridParts parts_;
  ModelOptions options_;
  at::Device device_;
  at::ScalarType compute_;
  WeightLoader weights_;
  std::string folder_;
  double norm_offset_ = 0.0;
  std::int64_t layer_ = -1;
  std::int64_t marked_bytes_ = 0;
};

}  // namespace replayeval
