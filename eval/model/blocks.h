// What stands between a layer's norm and its residual: a Mamba-2 mixer, attention, or an MLP.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/model/hybrid_cache.h"
#include "eval/model/layers.h"

namespace replayeval {

// The step that a block is part of.
struct Step {
  HybridCache& cache;
  std::int64_t batch, tokens;
  KernelClock* clock;
  MixerTap* tap;
};

class Block {
 public:
  virtual ~Block() = default;
  // x: [arms, batch * tokens, hidden] in compute dtype -> the same shape and type.
  virtual at::Tensor run(const at::Tensor& x, const Step& step) const = 0;
};

struct MambaWeights {
  Linear in_proj;  // to z | x | B | C | dt
  Linear out_proj;
};

class MambaBlock : public Block {
 public:
  // The mixer is number `index` of `mixers`, which must outlive the block.
  MambaBlock(MambaWeights weights, const std::vector<Mamba2Mixer>& mixers, std::size_t index)
      : weights_(std::move(weights)), mixers_(mixers), index_(index) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  MambaWeights weights_;
  const std::vector<Mamba2Mixer>& mixers_;
  std::size_t index_;
};

struct AttentionWeights {
  Linear q_proj, k_proj, v_proj, o_proj;
};

class AttentionBlock : public Block {
 public:
  // `index` counts attention layers from 0.
  AttentionBlock(AttentionWeights weights, std::size_t index) : weights_(std::move(weights)), index_(index) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  AttentionWeights weights_;
  std::size_t index_;
};

struct MlpWeights {
  Linear up_proj, down_proj;
};

class SquaredReluMlpBlock : public Block {
 public:
  explicit SquaredReluMlpBlock(MlpWeights weights) : weights_(std::move(weights)) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  MlpWeights weights_;
};

}  // namespace replayeval
