#include "eval/model/footprint.h"

#include <gtest/gtest.h>

namespace replayeval {
namespace {

// Three mixers of 4 heads x 16 x 32 in 2 groups, two attention layers of 2 key heads x 24.
Architecture small() {
  Architecture architecture;
  architecture.layers = {LayerKind::mamba2,    LayerKind::mlp,    LayerKind::mamba2,
                         LayerKind::attention, LayerKind::mamba2, LayerKind::attention};
  architecture.mamba = {4, 2, 16, 32};
  architecture.conv_kernel = 4;
  architecture.num_heads = 4;
  architecture.num_kv_heads = 2;
  architecture.head_dim = 24;
  return architecture;
}

TEST(Footprint, BytesOfOneSequence) {
  EXPECT_EQ(state_bytes(small(), Dtype::float32), 3 * 4 * 16 * 32 * 4);
  EXPECT_EQ(state_bytes(small(), Dtype::float16), 3 * 4 * 16 * 32 * 2);
  EXPECT_EQ(ring_bytes(small(), RingForm::inputs, 16, Dtype::float32), 3 * 16 * (64 + 64 + 4) * 4);
  EXPECT_EQ(ring_bytes(small(), RingForm::inputs, 16, Dtype::bfloat16),
            3 * 16 * ((64 + 64) * 2 + 4 * 4));  // dt stays float32
  EXPECT_EQ(conv_state_bytes(small(), Dtype::bfloat16), 3 * (64 + 2 * 64) * 3 * 2);
  EXPECT_EQ(kv_bytes_per_token(small(), Dtype::bfloat16), 2 * 2 * 2 * 24 * 2);
}

TEST(Footprint, DeltaRuleRingsByForm) {
  Architecture architecture = small();
  architecture.layers = {LayerKind::gated_delta, LayerKind::attention, LayerKind::gated_delta};
  architecture.delta = {2, 4, 16, 24};
  EXPECT_EQ(state_bytes(architecture, Dtype::float16), 2 * 4 * 24 * 16 * 2);
  EXPECT_EQ(ring_bytes(architecture, RingForm::deltas, 8, Dtype::bfloat16), 2 * 8 * ((96 + 32) * 2 + 4 * 4));
  EXPECT_EQ(ring_bytes(architecture, RingForm::inputs, 8, Dtype::bfloat16), 2 * 8 * ((96 + 32) * 2 + 8 * 4));
  EXPECT_EQ(conv_state_bytes(architecture, Dtype::float32), 2 * (2 * 32 + 96) * 3 * 4);
  architecture.layers[0] = architecture.layers[2] = LayerKind::kda;  // a decay for every key channel
  EXPECT_EQ(ring_bytes(architecture, RingForm::deltas, 8, Dtype::float32), 2 * 8 * (96 + 32 + 4 * 16) * 4);
}

TEST(Footprint, ValuesMayBeNarrowerThanKeys) {
  Architecture architecture = small();
  architecture.value_head_dim = 8;
  EXPECT_EQ(kv_bytes_per_token(architecture, Dtype::bfloat16), 2 * 2 * (24 + 8) * 2);
}

// Counts the reads and writes of a whole ring cycle token by token, as the kernels make them.
double counted_replay_bytes(std::int64_t buffer_len, Dtype state, Dtype ring, Dtype compute) {
  const Architecture architecture = small();
  const auto entry = static_cast<double>(ring_bytes(architecture, RingForm::inputs, 1, ring));
  const auto whole_state = static_cast<double>(state_bytes(architecture, state));
  double bytes = 0;
  for (std::int64_t w = 1; w <= buffer_len; ++w) {
    bytes += whole_state;                            // the checkpoint state is read
    bytes += static_cast<double>(w - 1) * entry;     // and the entries since
    bytes += w == buffer_len ? whole_state : entry;  // a flush writes the state, other tokens their entry
    bytes += 3.0 * (2 * 64 + 2 * 64 + 4) * static_cast<double>(dtype_size(compute));
  }
  return bytes / static_cast<double>(buffer_len);
}

TEST(Footprint, TrafficIsThatOfACycle) {
  for (const std::int64_t length : {1, 2, 7, 16, 64})
    for (const Dtype ring : {Dtype::float32, Dtype::bfloat16})
      EXPECT_DOUBLE_EQ(replay_bytes_per_token(small(), RingForm::inputs, length, Dtype::float32, ring, Dtype::bfloat16),
                       counted_replay_bytes(length, Dtype::float32, ring, Dtype::bfloat16));
}

TEST(Footprint, ABufferOfOneIsTheExactExecutor) {
  EXPECT_DOUBLE_EQ(replay_bytes_per_token(small(), RingForm::inputs, 1, Dtype::float16, Dtype::float32, Dtype::float32),
                   exact_bytes_per_token(small(), Dtype::float16, Dtype::float32));
}

TEST(Footprint, NothingWithoutMixers) {
  Architecture architecture = small();
  architecture.layers = {LayerKind::mlp};
  EXPECT_EQ(state_bytes(architecture, Dtype::float32), 0);
  EXPECT_EQ(kv_bytes_per_token(architecture, Dtype::float32), 0);
  EXPECT_EQ(conv_state_bytes(architecture, Dtype::float32), 0);
}

}  // namespace
}  // namespace replayeval
