// A Mamba-2 layer's caches on a device, driven the way an evaluation drives them: sequences of known tokens fed to
// slots in blocks. Inputs, outputs and caches start poisoned.
#pragma once

#include "kernels/mamba2/mamba2.h"
#include "tests/kernels/device_buffer.h"
#include "tests/kernels/feed.h"

#include <cstdint>
#include <string>
#include <vector>

namespace replayeval::testing {

// Known tokens: `sequences` sequences of `tokens` each. Values are representable in `dtype`.
struct Mamba2Problem {
  mamba2::Shape shape;
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;
  Dtype dtype = Dtype::float32;
  Dtype y_dtype = Dtype::float32;
  std::int64_t stride_pad = kStridePad;  // elements between rows of inputs and of y
  std::vector<float> x, B, C, dt;        // [sequences, tokens, ...]
  std::vector<float> A_log, D, dt_bias;
  float dt_min = 0.0F;
  float dt_max = __builtin_inff();
};

// Standard normal x, B and C; decays from near 0 to near 1.
Mamba2Problem random_problem(const mamba2::Shape& shape, std::int64_t sequences, std::int64_t tokens, Dtype dtype,
                             unsigned seed);

struct Mamba2Arm {
  bool replay = false;
  mamba2::ReplayForm form;
  Storage storage;
};
std::string arm_name(const Mamba2Arm& arm);

// All of a slot's live bits: the state, the ring's entries before the cursor, the cursor.
struct SlotBits {
  Bytes state, ring_x, ring_B, ring_dt;
  std::int32_t cursor = 0;
  bool operator==(const SlotBits&) const = default;
};

class Mamba2Decoder {
 public:
  Mamba2Decoder(DeviceKind kind, const Mamba2Problem& problem, const Mamba2Arm& arm, std::int64_t slots);

  // Zeroes a slot's state and cursor; what the ring holds stays, as it may.
  void reset_slot(std::int64_t slot);
  void set_state(std::int64_t slot, const std::vector<float>& values);

  // Runs one call over `rows` and `tokens` tokens each, then moves the cursors. Returns y's bits,
  // [rows, tokens, num_heads * head_dim]. With identity_slots the call gets no slot map: row b must name slot b.
  Bytes feed(const std::vector<FeedRow>& rows, std::int64_t tokens, bool identity_slots = false);

  SlotBits slot_bits(std::int64_t slot) const;
  std::vector<float> state(std::int64_t slot) const;                         // as stored
  std::vector<float> reconstructed(const std::vector<std::int32_t>& slots);  // as checkpoint and ring stand for
  StorageCounts counts() const;
  const Mamba2Arm& arm() const { return arm_; }

 private:
  std::size_t state_elements() const;
  void run(const mamba2::Block& block, const mamba2::Inputs& in, const mamba2::Output& out);
  mamba2::State state_view();
  mamba2::Ring ring_view();
  mamba2::Parameters parameters();

  Device device_;
  const Mamba2Problem& problem_;
  Mamba2Arm arm_;
  std::int64_t slots_;
  DeviceBuffer state_, ring_x_, ring_B_, ring_dt_, cursor_, counts_;
  DeviceBuffer a_log_, d_, dt_bias_;
};

// y of one token of one row out of feed()'s result.
Bytes token_bits(const Mamba2Problem& problem, const Bytes& y, std::int64_t tokens, std::int64_t row,
                 std::int64_t token);

}  // namespace replayeval::testing
