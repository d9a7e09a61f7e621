// A state-space mixer as decoding sees it, whatever its family: between a layer's projections stand the convolution,
// the recurrence (exact or replay) and the gated norm, with caches that belong to an arm. One file a family says how
// the recurrence is run. The comparator runs mixers on the side to measure state error.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "eval/executors/arm.h"
#include "eval/executors/gold_recurrence.h"
#include "eval/executors/kernel_clock.h"
#include "kernels/gated_norm/gated_norm.h"

namespace replayeval {

struct MixerSizes {
  std::int64_t num_heads = 0;
  std::int64_t state_rows = 0, state_columns = 0;  // of a head's state; y has a row's worth of elements a head
  std::int64_t projection = 0;                     // width of the mixer's input
  std::int64_t conv_begin = 0, conv_dim = 0;       // the input's channels that the convolution takes
  std::int64_t gate_begin = 0;                     // the input's first channel of the gate, as wide as y
  std::int64_t inner() const { return num_heads * state_rows; }  // of y
};

struct MixerConv {
  std::int64_t conv_kernel = 4;
  at::Tensor weight;  // [conv_dim, conv_kernel] float32
  at::Tensor bias;    // [conv_dim] float32, or undefined
};

struct MixerNorm {
  GateForm form = GateForm::gate_then_norm;
  GateActivation activation = GateActivation::silu;
  at::Tensor weight;            // [inner] float32, or undefined for gate_only
  std::int64_t group_size = 0;  // a divisor of inner
  float eps = 1e-5F;
};

// One arm's caches of one mixer. `cursor` is shared by all mixers of the arm and moved once per step.
struct MixerCache {
  at::Tensor state;              // [slots, num_heads, state_rows, state_columns], state storage dtype
  at::Tensor conv_state;         // [slots, conv_dim, conv_kernel - 1], compute dtype
  std::vector<at::Tensor> ring;  // replay only: [slots, ...] each, as the family has them
  at::Tensor cursor;             // replay only: [slots] int32
  at::Tensor counts;             // [3] int64: saturated, subnormal, non_finite
};

struct MixerResult {
  at::Tensor y;     // [B, T, inner]: the recurrence's output, compute dtype
  at::Tensor out;   // [B, T, inner]: after gate and norm, ready for the output projection
  at::Tensor conv;  // [B, T, conv_dim]: the convolved channels as the recurrence saw them
};

class Mixer {
 public:
  Mixer(const MixerSizes& sizes, MixerConv conv, MixerNorm norm)
      : sizes_(sizes), conv_(std::move(conv)), norm_(std::move(norm)) {}
  virtual ~Mixer() = default;

  virtual const std::string& family() const = 0;  // "mamba2", "gated_delta" or "kda"
  const MixerSizes& sizes() const { return sizes_; }
  const MixerNorm& norm() const { return norm_; }
  at::Device device() const { return conv_.weight.device(); }

  // Empty sequences. Throws std::invalid_argument on an arm that makes no sense for the family.
  MixerCache make_cache(const Arm& arm, std::int64_t slots, at::ScalarType compute_dtype,
                        at::Tensor shared_cursor = {}) const;

  // projected: [B, T, sizes().projection] in compute dtype. Does not move the cursor. slots: [B] int32 on the device,
  // or undefined for the identity. out: dense memory for MixerResult::out, or undefined. Throws std::invalid_argument
  // on other shapes and types.
  MixerResult run(const Arm& arm, MixerCache& cache, const at::Tensor& projected, const at::Tensor& slots = {},
                  KernelClock* clock = nullptr, const at::Tensor& out = {}) const;

  // The state at the cache's present position, float32 [B, num_heads, state_rows, state_columns]; for replay arms
  // rebuilt from checkpoint and ring.
  at::Tensor present_state(const Arm& arm, const MixerCache& cache, std::int64_t batch,
                           const at::Tensor& slots = {}) const;

  // The float64 recurrence over this mixer's parameters, at an empty sequence.
  virtual std::unique_ptr<GoldRecurrence> gold() const = 0;

 protected:
  // One call of the recurrence. `conv` and `y` as in MixerResult.
  struct Call {
    const Arm& arm;
    MixerCache& cache;
    const Device& device;
    const DecodeBlock& block;
    const at::Tensor &projected, &conv, &y;
  };

  static State state_of(const Arm& arm, const MixerCache& cache);

 private:
  virtual std::vector<at::Tensor> make_ring(const Arm& arm, std::int64_t slots, const at::Device& device) const = 0;
  virtual void run_recurrence(const Call& call) const = 0;
  virtual void reconstruct(const Arm& arm, const MixerCache& cache, const Device& device, const DecodeBlock& block,
                           float* state) const = 0;

  void check_projected(const MixerCache& cache, const at::Tensor& projected) const;
  void run_conv(MixerCache& cache, const Device& device, const DecodeBlock& block, const at::Tensor& projected,
                const at::Tensor& out) const;
  void run_gated_norm(const Device& device, const at::Tensor& projected, const at::Tensor& y,
                      const at::Tensor& out) const;

  MixerSizes sizes_;
  MixerConv conv_;
  MixerNorm norm_;
};

// cursor[slot] = (cursor[slot] + tokens) % buffer_len; nothing for exact arms.
void advance_cursor(const Arm&, const at::Tensor& cursor, std::int64_t batch, std::int64_t tokens,
                    const at::Tensor& slots = {});

}  // namespace replayeval
