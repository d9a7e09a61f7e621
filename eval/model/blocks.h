// What stands between a layer's norm and its residual: a state-space mixer, attention, or an MLP.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "eval/model/hybrid_cache.h"
#include "eval/model/layers.h"
#include "eval/model/rotary.h"

namespace replayeval {

// The step that a block is part of.
struct Step {
  HybridCache& cache;
  const RowSlots& rows;
  const PagedRows& pages;
  std::int64_t batch, tokens;
  KernelClock* clock;
  MixerTap* tap;
  at::Tensor embeddings;  // [arms, batch * tokens, hidden]: what entered the first layer
};

class Block {
 public:
  virtual ~Block() = default;
  // x: [arms, batch * tokens, width] in compute dtype -> [arms, batch * tokens, hidden], same type.
  virtual at::Tensor run(const at::Tensor& x, const Step& step) const = 0;
  // Why a CUDA graph cannot hold the block: the host takes part in it, say. "" if it can.
  virtual std::string graph_obstacle() const { return ""; }
};

// linear(), counted as dense work.
at::Tensor timed_linear(const at::Tensor& x, const Linear& layer, const Step& step);

struct MambaWeights {
  Linear in_proj;  // to z | x | B | C | dt
  Linear out_proj;
  at::Tensor projection_multiplier;  // [projection_size] float32 on in_proj's output, or undefined
};

// The mixer under every arm, one after the other, and out_proj. `index` counts the model's mixers from 0.
// projected: [arms, batch * tokens, mixer.sizes().projection], compute dtype -> [arms, batch * tokens, hidden].
at::Tensor mix_arms(const at::Tensor& projected, const Mixer& mixer, std::size_t index, const Linear& out_proj,
                    const Step& step);

class MambaBlock : public Block {
 public:
  MambaBlock(MambaWeights weights, std::shared_ptr<const Mixer> mixer, std::size_t index)
      : weights_(std::move(weights)), mixer_(std::move(mixer)), index_(index) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  MambaWeights weights_;
  std::shared_ptr<const Mixer> mixer_;
  std::size_t index_;
};

struct AttentionWeights {
  Linear q_proj, k_proj, v_proj, o_proj;
};

// The heads of an attention layer and what is done with their keys and scores.
struct AttentionForm {
  std::int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  std::optional<double> scale;         // of the scores; head_dim^-1/2 if absent
  std::optional<Rotary> rotary;        // no positions if absent
  std::optional<std::int64_t> window;  // a token sees itself and window - 1 before it; all if absent
  double key_multiplier = 1.0;         // on keys, before the rotation
};

// Attends over everything so far, arm by arm, and keeps the new keys and values in attention cache `index`.
// q, k, v: [arms, batch * tokens, heads * head_dim] -> [arms, batch * tokens, num_heads * head_dim].
at::Tensor attend_arms(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionForm& form,
                       std::size_t index, const Step& step);

class AttentionBlock : public Block {
 public:
  // `index` counts the model's attention caches from 0.
  AttentionBlock(AttentionWeights weights, AttentionForm form, std::size_t index)
      : weights_(std::move(weights)), form_(std::move(form)), index_(index) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  AttentionWeights weights_;
  AttentionForm form_;
  std::size_t index_;
};

struct MlpWeights {
  Linear up_proj, down_proj;
};

// down(relu(up x)^2)
class SquaredReluMlpBlock : public Block {
 public:
  explicit SquaredReluMlpBlock(MlpWeights weights) : weights_(std::move(weights)) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  MlpWeights weights_;
};

}  // namespace replayeval
