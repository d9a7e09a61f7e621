// What a mixer does beside its recurrence, as a layer of a model does it: the convolution and the gated norm. Buffers
// are rotated so that no call finds its own in a cache.
#pragma once

#include "kernels/bench/bench_device.h"
#include "kernels/conv/conv.h"
#include "kernels/gated_norm/gated_norm.h"

#include <cstdint>
#include <memory>

namespace replayeval::bench {

// Elements of a token. The convolution's channels and the gate are parts of the input projection's rows.
struct MixerWidths {
  std::int64_t projection = 0;
  std::int64_t conv_begin = 0, channels = 0;  // of the convolution
  std::int64_t gate_begin = 0, inner = 0;     // of the gate and the norm
  std::int64_t group = 0;
  GateForm form = GateForm::gate_then_norm;
  GateActivation activation = GateActivation::silu;
};

// Sequences with so many tokens each, in bfloat16; parameters are float32.
struct MixerPartSizes {
  MixerWidths widths;
  std::int64_t batch = 0, tokens = 1;
  std::int64_t rows() const { return batch * tokens; }
};

class MixerPart {
 public:
  virtual ~MixerPart() = default;
  virtual std::size_t copies() const = 0;
  virtual void run(std::size_t copy) = 0;
  virtual double bytes() const = 0;  // that a call has to move, its parameters included
  // Runs the first copy once, and its first, middle and last sequences on the CPU: the largest relative error
  // (Frobenius norm) of a sequence's outputs; not a number where they are not, or where a state differs.
  virtual double output_error() = 0;
};

std::unique_ptr<MixerPart> make_conv_part(BenchDevice& device, const MixerPartSizes& sizes);
std::unique_ptr<MixerPart> make_gated_norm_part(BenchDevice& device, const MixerPartSizes& sizes);

}  // namespace replayeval::bench
