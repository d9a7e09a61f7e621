// A layer of the residual stream: what most architectures do between two norms.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "eval/model/blocks.h"

namespace replayeval {

class Layer {
 public:
  virtual ~Layer() = default;
  // stream: [arms, batch * tokens, hidden] on the layer's device -> the stream behind the layer.
  virtual ResidualStream run(ResidualStream stream, const Step& step) const = 0;
  virtual std::string graph_obstacle() const { return ""; }  // as the block's
};

struct Residual {
  double multiplier = 1.0;  // on what the block returns
  bool in_fp32 = false;     // the stream is kept in float32
};

// stream + multiplier * block(norm(stream))
class PreNormLayer : public Layer {
 public:
  PreNormLayer(Norm norm, std::unique_ptr<Block> block, at::ScalarType compute_dtype, Residual residual = {})
      : norm_(std::move(norm)), block_(std::move(block)), compute_dtype_(compute_dtype), residual_(residual) {}
  ResidualStream run(ResidualStream stream, const Step& step) const override;
  std::string graph_obstacle() const override { return block_->graph_obstacle(); }

 private:
  Norm norm_;
  std::unique_ptr<Block> block_;
  at::ScalarType compute_dtype_;
  Residual residual_;
};

// stream + norm(block(stream))
class PostNormLayer : public Layer {
 public:
  PostNormLayer(Norm norm, std::unique_ptr<Block> block, at::ScalarType compute_dtype)
      : norm_(std::move(norm)), block_(std::move(block)), compute_dtype_(compute_dtype) {}
  ResidualStream run(ResidualStream stream, const Step& step) const override;
  std::string graph_obstacle() const override { return block_->graph_obstacle(); }

 private:
  Norm norm_;
  std::unique_ptr<Block> block_;
  at::ScalarType compute_dtype_;
};

}  // namespace replayeval
