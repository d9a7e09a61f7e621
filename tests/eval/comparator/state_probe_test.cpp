#include "eval/comparator/state_probe.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "eval/executors/mamba2_mixer.h"

namespace replayeval {
namespace {

// Two mixers in a row behind a fixed embedding: enough of a model to give the probe streams that differ by arm.
class TwoMixers final : public Model {
 public:
  TwoMixers() {
    for (int i = 0; i < 2; ++i) {
      const mamba2::Shape shape{2, 1, 8, 16};
      MixerNorm norm;
      norm.weight = at::ones({16});
      norm.group_size = 16;
      const Mamba2Weights weights{at::rand({2}), at::randn({2}), at::randn({2}), 0.0F, INFINITY};
      const MixerConv conv{4, at::randn({mamba2_sizes(shape).conv_dim, 4}) * 0.5, {}};
      mixers_.push_back(std::make_shared<const Mamba2Mixer>(shape, conv, norm, weights));
      in_.push_back(at::randn({16, mixers_.back()->sizes().projection}) * 0.3);
    }
    embedding_ = at::randn({32, 16});
  }

  struct Cache final : DecodeCache {
    std::vector<Arm> list;
    std::vector<std::vector<MixerCache>> mixers;  // [arm][mixer]
    std::int64_t tokens = 0;
    const TwoMixers* model = nullptr;
    const std::vector<Arm>& arms() const override { return list; }
    std::int64_t slots() const override { return 1; }
    std::int64_t capacity() const override { return 1 << 20; }
    std::int64_t position(std::int64_t) const override { return tokens; }
    void reset_slot(std::int64_t) override { reset(); }
    void copy_slot(std::int64_t, const DecodeCache&, std::int64_t) override { FAIL(); }
    void store_prefilled(std::int64_t, const DecodeCache&, std::int64_t) override { FAIL(); }
    void reset() override {
      tokens = 0;
      mixers.clear();
      for (const Arm& arm : list) {
        auto& row = mixers.emplace_back();
        for (const auto& mixer : model->mixers_) {
          row.push_back(mixer->make_cache(arm, 1, at::kFloat, row.empty() ? at::Tensor() : row[0].cursor));
        }
      }
    }
    std::vector<StorageCounts> storage_counts(std::size_t) const override { return {}; }
    SequenceBytes sequence_bytes(std::size_t) const override { return {}; }
    KeyValueBytes key_value_bytes() const override { return {}; }
    std::vector<HeldTensor> held(std::int64_t) const override { return {}; }
    std::string graph_obstacle() const override { return "a test's"; }
  };

  const std::string& model_type() const override { return type_; }
  std::int64_t vocab_size() const override { return 32; }
  std::int64_t hidden_size() const override { return 16; }
  std::int64_t max_positions() const override { return 1 << 20; }
  std::int64_t parameter_count() const override { return 0; }
  const WeightTotals& weight_totals() const override { return totals_; }
  const ModelOptions& options() const override { return options_; }
  const std::vector<std::shared_ptr<const Mixer>>& mixers() const override { return mixers_; }
  const std::vector<std::int64_t>& mixer_layers() const override { return layers_; }
  std::unique_ptr<DecodeCache> make_cache(const std::vector<Arm>& arms, std::int64_t, std::int64_t,
                                          const KeyValuePageOptions&) const override {
    auto cache = std::make_unique<Cache>();
    cache->list = arms;
    cache->model = this;
    cache->reset();
    return cache;
  }
  at::Tensor logits(const at::Tensor& hidden) const override { return hidden; }

  at::Tensor forward(const at::Tensor& ids, DecodeCache& cache, Mode, KernelClock*, MixerTap* tap,
                     const std::vector<std::int32_t>&) const override {
    auto& own = static_cast<Cache&>(cache);
    std::vector<at::Tensor> hidden(own.list.size(), embedding_.index_select(0, ids.flatten()).unsqueeze(0));
    for (std::size_t m = 0; m < mixers_.size(); ++m) {
      for (std::size_t arm = 0; arm < own.list.size(); ++arm) {
        const at::Tensor projected = at::matmul(hidden[arm], in_[m]);
        tap->on_mixer(static_cast<std::int64_t>(m), arm, projected);
        hidden[arm] = hidden[arm] + mixers_[m]->run(own.list[arm], own.mixers[arm][m], projected).out;
      }
    }
    for (std::size_t arm = 0; arm < own.list.size(); ++arm) {
      advance_cursor(own.list[arm], own.mixers[arm][0].cursor, 1, ids.size(1));
    }
    own.tokens += ids.size(1);
    return at::stack(hidden);
  }

 private:
  std::string type_ = "test";
  ModelOptions options_;
  WeightTotals totals_;
  std::vector<std::shared_ptr<const Mixer>> mixers_;
  std::vector<std::int64_t> layers_ = {1, 3};
  std::vector<at::Tensor> in_;
  at::Tensor embedding_;
};

Arm exact(const std::string& name, Dtype dtype) {
  Arm arm;
  arm.name = name;
  arm.state_storage.dtype = dtype;
  return arm;
}

Arm replay(const std::string& name, Dtype state, Dtype ring) {
  Arm arm = exact(name, state);
  arm.executor = Executor::replay;
  arm.replay.buffer_len = 4;
  arm.replay.ring_dtype = ring;
  return arm;
}

class StateProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    arms_ = {exact("baseline", Dtype::float32), exact("again", Dtype::float32), exact("bf16", Dtype::bfloat16),
             replay("replay", Dtype::float32, Dtype::float32)};
  }

  const reports::StateError& row(const std::vector<reports::StateError>& rows, const std::string& arm,
                                 const std::string& depth, std::int64_t layer, std::int64_t position) {
    for (const auto& row : rows) {
      if (row.arm == arm && row.depth == depth && row.layer == layer && row.position == position) return row;
    }
    throw std::runtime_error("no row for " + arm + " " + depth);
  }

  std::vector<Arm> arms_;
};

TEST_F(StateProbeTest, RowsForEveryArmDepthLayerAndPosition) {
  const TwoMixers model;
  StateProbe probe(model, arms_, 0, {3, 10}, {ErrorDepth::local, ErrorDepth::propagated, ErrorDepth::gold});
  probe.add(at::randint(32, {1, 10}, at::kLong));
  probe.add(at::randint(32, {1, 12}, at::kLong));
  const auto rows = probe.rows();
  EXPECT_EQ(rows.size(), 4U * 3 * 2 * 2);
  for (const auto& entry : rows) EXPECT_EQ(entry.head_relative_frobenius.size(), 2U);
}

TEST_F(StateProbeTest, ErrorsAreZeroWhereArmsAgreeAndOfTheStoragesSizeWhereTheyDoNot) {
  const TwoMixers model;
  StateProbe probe(model, arms_, 0, {3, 10}, {ErrorDepth::local, ErrorDepth::propagated, ErrorDepth::gold});
  probe.add(at::randint(32, {1, 10}, at::kLong));
  const auto rows = probe.rows();
  for (const std::int64_t layer : {1, 3}) {
    EXPECT_EQ(row(rows, "again", "propagated", layer, 10).relative_frobenius, 0.0);
    EXPECT_EQ(row(rows, "again", "local", layer, 10).max_abs, 0.0);
    EXPECT_EQ(row(rows, "again", "gold", layer, 10).relative_frobenius,
              row(rows, "baseline", "gold", layer, 10).relative_frobenius);
    const double exact_gold = row(rows, "baseline", "gold", layer, 10).relative_frobenius;
    EXPECT_GT(exact_gold, 0.0);
    EXPECT_LT(exact_gold, 1e-6);  // a few float32 roundings
    const double rounded = row(rows, "bf16", "gold", layer, 10).relative_frobenius;
    EXPECT_GT(rounded, 2e-4);  // bfloat16 rounds to 2^-9 relative
    EXPECT_LT(rounded, 2e-2);
    EXPECT_LT(row(rows, "replay", "gold", layer, 10).relative_frobenius, 1e-6);
  }
}

// The first layer sees the same inputs under all arms, so local and propagated agree there; in the second layer the
// stream of the bfloat16 arm has moved, which only the propagated error includes.
TEST_F(StateProbeTest, DepthsDifferOnlyBehindTheFirstMixer) {
  const TwoMixers model;
  StateProbe probe(model, arms_, 0, {10}, {ErrorDepth::local, ErrorDepth::propagated});
  probe.add(at::randint(32, {1, 10}, at::kLong));
  const auto rows = probe.rows();
  EXPECT_EQ(row(rows, "bf16", "local", 1, 10).relative_frobenius,
            row(rows, "bf16", "propagated", 1, 10).relative_frobenius);
  EXPECT_NE(row(rows, "bf16", "local", 3, 10).relative_frobenius,
            row(rows, "bf16", "propagated", 3, 10).relative_frobenius);
}

TEST_F(StateProbeTest, BaselineNeedNotComeFirst) {
  const TwoMixers model;
  const at::Tensor ids = at::randint(32, {1, 10}, at::kLong);
  StateProbe first(model, arms_, 0, {10}, {ErrorDepth::local, ErrorDepth::propagated, ErrorDepth::gold});
  first.add(ids);
  std::swap(arms_[0], arms_[3]);
  StateProbe last(model, arms_, 3, {10}, {ErrorDepth::local, ErrorDepth::propagated, ErrorDepth::gold});
  last.add(ids);
  const auto a = first.rows();
  const auto b = last.rows();
  for (const char* depth : {"local", "propagated", "gold"}) {
    for (const char* arm : {"bf16", "replay", "baseline"}) {
      EXPECT_EQ(row(a, arm, depth, 3, 10).relative_frobenius, row(b, arm, depth, 3, 10).relative_frobenius)
          << depth << arm;
    }
  }
}

TEST_F(StateProbeTest, PositionsMustAscend) {
  const TwoMixers model;
  EXPECT_THROW(StateProbe(model, arms_, 0, {}, {ErrorDepth::local}), std::invalid_argument);
  EXPECT_THROW(StateProbe(model, arms_, 0, {0, 4}, {ErrorDepth::local}), std::invalid_argument);
  EXPECT_THROW(StateProbe(model, arms_, 0, {8, 4}, {ErrorDepth::local}), std::invalid_argument);
}

}  // namespace
}  // namespace replayeval
