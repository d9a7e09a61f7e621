// The Mamba-2 mixer. Its input is z | x | B | C | dt, of which x | B | C go through the convolution.
#pragma once

#include "eval/executors/mixer.h"
#include "kernels/mamba2/mamba2.h"

namespace replayeval {

struct Mamba2Weights {
  at::Tensor A_log, D, dt_bias;  // [num_heads] float32
  float dt_min = 0.0F, dt_max = 0.0F;
};

class Mamba2Mixer final : public Mixer {
 public:
  // Tensors on one device.
  Mamba2Mixer(const mamba2::Shape& shape, MixerConv conv, MixerNorm norm, Mamba2Weights weights);

  const std::string& family() const override;
  const mamba2::Shape& shape() const { return shape_; }
  const Mamba2Weights& weights() const { return weights_; }
  std::unique_ptr<GoldRecurrence> gold() const override;

 private:
  // The ring: x, B, dt.
  std::vector<at::Tensor> make_ring(const Arm& arm, std::int64_t slots, const at::Device& device) const override;
  void run_recurrence(const Call& call) const override;
  void reconstruct(const Arm& arm, const MixerCache& cache, const Device& device, const DecodeBlock& block,
                   float* state) const override;
  mamba2::Parameters parameters() const;

  mamba2::Shape shape_;
  Mamba2Weights weights_;
};

// Widths of z, x, B, C and dt in the mixer's input.
MixerSizes mamba2_sizes(const mamba2::Shape& shape);

}  // namespace replayeval
