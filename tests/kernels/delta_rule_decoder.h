// A delta-rule layer's caches on a device, driven the way an evaluation drives them: sequences of known tokens fed to
// slots in blocks. Inputs, outputs and caches start poisoned. Calls go through the families' own headers.
#pragma once

#include "kernels/delta_rule/delta_rule.h"
#include "tests/kernels/device_buffer.h"
#include "tests/kernels/feed.h"

#include <cstdint>
#include <string>
#include <vector>

namespace replayeval::testing {

// Known tokens: `sequences` sequences of `tokens` each. Values are representable in `dtype`.
struct DeltaProblem {
  delta_rule::Family family = delta_rule::Family::gated_delta;
  delta_rule::Shape shape;
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;
  Dtype dtype = Dtype::float32;
  Dtype y_dtype = Dtype::float32;
  std::int64_t stride_pad = kStridePad;  // elements between rows of inputs and of y
  std::vector<float> q, k, v, b, f;      // [sequences, tokens, ...]
  std::vector<float> A_log, dt_bias;
  bool allow_neg_eigval = false;
  delta_rule::Numerics numerics;
  delta_rule::Gate gate = delta_rule::Gate::softplus;
  float lower_bound = -5.0F;

  std::int64_t gates() const { return delta_rule::gate_dim(family, shape); }
};

// Standard normal q, k and v; decays from near 0 to near 1, betas likewise. kda by either gate, depending on the seed.
DeltaProblem random_delta_problem(delta_rule::Family family, const delta_rule::Shape& shape, std::int64_t sequences,
                                  std::int64_t tokens, Dtype dtype, unsigned seed);

struct DeltaArm {
  bool replay = false;
  delta_rule::ReplayForm form;
  Storage storage;
};
std::string arm_name(const DeltaArm& arm);

// All of a slot's live bits: the state, the ring's entries before the cursor, the cursor.
struct DeltaSlotBits {
  Bytes state, values, k, log_decay, beta;
  std::int32_t cursor = 0;
  bool operator==(const DeltaSlotBits&) const = default;
};

class DeltaDecoder {
 public:
  DeltaDecoder(DeviceKind kind, const DeltaProblem& problem, const DeltaArm& arm, std::int64_t slots);

  // Zeroes a slot's state and cursor; what the ring holds stays, as it may.
  void reset_slot(std::int64_t slot);
  void set_state(std::int64_t slot, const std::vector<float>& values);

  // Runs one call over `rows` and `tokens` tokens each, then moves the cursors. Returns y's bits,
  // [rows, tokens, num_value_heads * value_dim]. With identity_slots the call gets no slot map: row b must name slot b.
  Bytes feed(const std::vector<FeedRow>& rows, std::int64_t tokens, bool identity_slots = false);

  DeltaSlotBits slot_bits(std::int64_t slot) const;
  std::vector<float> state(std::int64_t slot) const;                         // as stored
  std::vector<float> reconstructed(const std::vector<std::int32_t>& slots);  // as checkpoint and ring stand for
  StorageCounts counts() const;

 private:
  bool kda() const { return problem_.family == delta_rule::Family::kda; }
  std::size_t state_elements() const;
  void run(const DecodeBlock& block, const delta_rule::Inputs& in, const Output& out);
  State state_view();
  delta_rule::Ring ring_view();
  delta_rule::Parameters parameters();

  Device device_;
  const DeltaProblem& problem_;
  DeltaArm arm_;
  std::int64_t slots_;
  DeviceBuffer state_, ring_values_, ring_k_, ring_log_decay_, ring_beta_, cursor_, counts_;
  DeviceBuffer a_log_, dt_bias_;
};

// y of one token of one row out of feed()'s result.
Bytes token_bits(const DeltaProblem& problem, const Bytes& y, std::int64_t tokens, std::int64_t row,
                 std::int64_t token);

}  // namespace replayeval::testing
