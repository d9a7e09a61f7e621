// A use of a shared attention-and-MLP block, and the Mamba-2 mixer that it feeds.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "eval/model/activation.h"
#include "eval/model/hybrid_layer.h"

namespace replayeval {

// up(down x), added to what a shared projection makes of x.
struct Adapter {
  Linear down, up;
};

// What all uses of a block share.
struct SharedBlock {
  Norm input_norm;                        // [2 * hidden]
  Linear q_proj, k_proj, v_proj, o_proj;  // from 2 * hidden, to hidden
  Norm mlp_norm;                          // [hidden]
  Linear gate_up_proj;                    // to gate | up
  Linear down_proj;
  AttentionForm attention;
  Activation activation = Activation::gelu;
};

// What one use has for itself.
struct SharedBlockUse {
  std::optional<Adapter> q_adapter, k_adapter, v_adapter;
  Adapter gate_up_adapter;
  Linear linear;                    // on the block's output
  std::size_t attention_index = 0;  // of the use's keys and values, among the model's attention caches
};

// stream + mamba(norm(stream + linear(block([stream, embeddings])))), where
//   block(x) = mlp(norm(attention(norm(x)))), without residuals.
class SharedBlockLayer : public Layer {
 public:
  SharedBlockLayer(std::shared_ptr<const SharedBlock> block, SharedBlockUse use, Norm mamba_norm,
                   std::unique_ptr<Block> mamba, at::ScalarType compute_dtype)
      : block_(std::move(block)),
        use_(std::move(use)),
        mamba_norm_(std::move(mamba_norm)),
        mamba_(std::move(mamba)),
        compute_dtype_(compute_dtype) {}
  ResidualStream run(ResidualStream stream, const Step& step) const override;

 private:
  at::Tensor attention(const at::Tensor& x, const Step& step) const;
  at::Tensor mlp(const at::Tensor& x, const Step& step) const;

  std::shared_ptr<const SharedBlock> block_;
  SharedBlockUse use_;
  Norm mamba_norm_;
  std::unique_ptr<Block> mamba_;
  at::ScalarType compute_dtype_;
};

}  // namespace replayeval
