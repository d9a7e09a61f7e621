// Attention and a Mamba-2 mixer side by side, on one norm of the stream.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "eval/model/hybrid_layer.h"

namespace replayeval {

struct ParallelMultipliers {
  double mamba_in = 1.0, mamba_out = 1.0, attention_in = 1.0, attention_out = 1.0;
};

// stream + mamba_out * mamba(mamba_in * x) + attention_out * attention(attention_in * x), x = norm(stream)
class ParallelLayer : public Layer {
 public:
  ParallelLayer(Norm norm, std::unique_ptr<Block> mamba, std::unique_ptr<Block> attention, at::ScalarType compute_dtype,
                ParallelMultipliers multipliers)
      : norm_(std::move(norm)),
        mamba_(std::move(mamba)),
        attention_(std::move(attention)),
        compute_dtype_(compute_dtype),
        multipliers_(multipliers) {}
  ResidualStream run(ResidualStream stream, const Step& step) const override;

 private:
  Norm norm_;
  std::unique_ptr<Block> mamba_, attention_;
  at::ScalarType compute_dtype_;
  ParallelMultipliers multipliers_;
};

}  // namespace replayeval
