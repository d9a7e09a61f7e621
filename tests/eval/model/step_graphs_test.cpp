// One-token steps that find their rows in tables on the device, and the graphs that replay them.
#include "eval/model/step_graphs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "eval/model/hybrid_cache.h"
#include "eval/model/model.h"
#include "eval/model/step_tables.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/model/config_folder.h"
#include "tests/eval/model/small_configs.h"
#include "tests/eval/model/tiny_nemotron_h.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

using Slots = std::vector<std::int32_t>;

at::Tensor random_ids(std::int64_t batch, std::int64_t tokens) {
  return at::randint(101, {batch, tokens}, at::TensorOptions().dtype(at::kLong));
}

std::vector<Arm> two_arms(RingForm form) {
  std::vector<Arm> arms = {testing::exact_arm("exact"),
                           testing::replay_arm("replay", Dtype::bfloat16, Dtype::bfloat16)};
  arms[1].ring_form = form;
  arms[1].replay.buffer_len = 5;
  return arms;
}

// What rows read and write, by tables or as the host knows it. [heads, pages * page_length, dim].
class StepTablesTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    device_ = GetParam() == DeviceKind::cpu ? at::Device(at::kCPU) : at::Device(at::kCUDA, 0);
  }

  // A step of `slots` at `positions`, twice, on pools of equal contents; the second step's tables are those of the
  // first, which the device has moved on.
  void expect_same(const Slots& slots, std::vector<std::int64_t> positions, KeyValuePages& pages) {
    std::optional<StepTables> tables;
    for (int step = 0; step < 3; ++step) {
      std::vector<std::pair<std::int64_t, std::int64_t>> lengths;
      for (const std::int32_t slot : slots)
        if (slot >= 0) lengths.emplace_back(slot, positions[static_cast<std::size_t>(slot)] + 1);
      pages.reserve(lengths);
      RowSlots rows(slots, positions), tabled_rows = rows;
      PagedRows plain(pages, rows, 1, 16), tabled = plain;
      if (!tables) tables.emplace(rows, plain, device_);
      tables->update(rows, plain);
      tables->place(tabled_rows, tabled);
      const auto options = at::TensorOptions().device(device_);
      const at::Tensor pool = at::zeros({2, pages.pages() * pages.page_length(), 3}, options), other = pool.clone();
      const at::Tensor fresh = at::randn({static_cast<std::int64_t>(slots.size()), 1, 2, 3}, options);
      plain.write(pool, fresh, rows.places(1, device_));
      tabled.write(other, fresh, tabled_rows.places(1, device_));
      EXPECT_TRUE(at::equal(pool, other)) << "step " << step;
      EXPECT_EQ(pool.ne(0).sum().item<std::int64_t>(), 6 * static_cast<std::int64_t>(lengths.size()));
      EXPECT_TRUE(at::equal(plain.read(pool, 16), tabled.read(other, 16)));
      EXPECT_TRUE(at::equal(rows.places(1, device_).positions, tabled_rows.places(1, device_).positions));
      const at::Tensor &mine = tabled_rows.places(1, device_).mixer_slots,
                       &theirs = rows.places(1, device_).mixer_slots;
      EXPECT_EQ(mine.defined(), theirs.defined());
      if (mine.defined()) {
        EXPECT_TRUE(at::equal(mine, theirs));
      }
      tables->advance();
      tables->note_advance();
      for (const auto& [slot, length] : lengths) positions[static_cast<std::size_t>(slot)] = length;
    }
  }

  at::Device device_ = at::Device(at::kCPU);
};

TEST_P(StepTablesTest, SayWhatTheHostSays) {
  for (const std::int64_t page_length : {2, 4, 16}) {
    KeyValuePages pages(4, 16, {page_length});
    expect_same({0, 1, 2, 3}, {3, 3, 3, 3}, pages);
    expect_same({0, 1, 2, 3}, {6, 7, 9, 11}, pages);
    expect_same({2, -1, 0}, {9, 0, 12, 0}, pages);
  }
}

REPLAYEVAL_ON_EACH_DEVICE(StepTablesTest);

// Two caches of the same sequences, one of a model whose steps are captured.
class CudaStepGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = testing::why_unavailable(DeviceKind::cuda);
    if (!reason.empty()) GTEST_SKIP() << reason;
    at::manual_seed(0);
  }
  static std::unique_ptr<Model> load(const nlohmann::json& config, Dtype compute, bool graphs) {
    ModelOptions options;
    options.device = DeviceKind::cuda;
    options.compute_dtype = compute;
    options.random_seed = 3;
    options.graphs = graphs;
    return load_model(testing::ConfigFolder(config).open(), options);
  }
  static std::int64_t replays(DecodeCache& cache) {
    StepGraphs* graphs = dynamic_cast<HybridCache&>(cache).graphs();
    return graphs == nullptr ? 0 : graphs->replays();
  }
  static void expect_same_sequences(const DecodeCache& one, const DecodeCache& other) {
    for (std::int64_t slot = 0; slot < one.slots(); ++slot) {
      ASSERT_EQ(one.position(slot), other.position(slot));
      const auto a = one.held(slot), b = other.held(slot);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i)
        EXPECT_TRUE(at::equal(a[i].value, b[i].value)) << a[i].part << " of arm " << a[i].arm << ", slot " << slot;
    }
  }
};

// Rows that come, go, grow apart and pass the ends of pages and key steps: to the bit what single launches give.
void decode_both(const Model& plain, const Model& captured, const std::vector<Arm>& arms, std::int64_t& replays,
                 const std::function<void(const DecodeCache&, const DecodeCache&)>& compare,
                 const std::function<std::int64_t(DecodeCache&)>& count) {
  const auto a = plain.make_cache(arms, 3, 200, {16}), b = captured.make_cache(arms, 3, 200, {16});
  const auto step = [&](const at::Tensor& ids, const Slots& slots, Mode mode = Mode::stepwise,
                        KernelClock* clock = nullptr) {
    const at::Tensor one = plain.forward(ids, *a, mode, nullptr, nullptr, slots).cpu();
    const at::Tensor other = captured.forward(ids, *b, mode, clock, nullptr, slots).cpu();
    for (std::int64_t row = 0; row < ids.size(-2); ++row) {
      if (!slots.empty() && slots[static_cast<std::size_t>(row)] < 0) continue;
      ASSERT_TRUE(at::equal(one.select(1, row), other.select(1, row)))
          << "position " << a->position() << " row " << row;
    }
  };
  step(random_ids(3, 40), {}, Mode::teacher_forced);
  step(random_ids(3, 30), {});
  a->reset_slot(1);
  b->reset_slot(1);
  step(random_ids(3, 8), {});
  step(random_ids(2, 8), {2, 0});
  step(random_ids(3, 9), {1, -1, 2});
  a->copy_slot(0, *a, 1);
  b->copy_slot(0, *b, 1);
  KernelClock clock(DeviceKind::cuda);
  step(random_ids(3, 60), {}, Mode::stepwise, &clock);
  for (const KernelSeconds& entry : clock.totals()) EXPECT_GT(entry.seconds, 0.0) << entry.arm << " " << entry.kernel;
  step(at::stack({random_ids(3, 6), random_ids(3, 6)}), {});
  a->reset();
  b->reset();
  step(random_ids(3, 10), {});
  compare(*a, *b);
  replays = count(*b);
}

TEST_F(CudaStepGraphs, GiveTheBitsOfSingleLaunches) {
  const std::map<std::string, nlohmann::json> configs = {
      {"mamba2", testing::mamba2_config()},           {"falcon_h1", testing::falcon_h1_config()},
      {"qwen3_next", testing::qwen3_next_config()},   {"zamba2", testing::zamba2_config()},
      {"olmo_hybrid", testing::olmo_hybrid_config()}, {"kimi_linear", testing::kimi_linear_config()}};
  for (const auto& [name, config] : configs)
    for (const Dtype compute : {Dtype::float32, Dtype::bfloat16}) {
      SCOPED_TRACE(name + ", " + std::string(dtype_name(compute)));
      const auto plain = load(config, compute, false), captured = load(config, compute, true);
      const RingForm form = plain->mixers().front()->family() == "mamba2" ? RingForm::inputs : RingForm::deltas;
      std::int64_t count = 0;
      decode_both(*plain, *captured, two_arms(form), count, expect_same_sequences, replays);
      const std::string obstacle = captured->make_cache(two_arms(form), 1, 8)->graph_obstacle();
      if (obstacle.empty()) {
        EXPECT_GT(count, 80);
      } else {
        EXPECT_EQ(obstacle, "the host reads which experts were chosen");
      }
    }
}

TEST_F(CudaStepGraphs, TheClockTellsArmsApart) {
  const auto model = load(testing::mamba2_config(), Dtype::bfloat16, true);
  const auto cache = model->make_cache(two_arms(RingForm::inputs), 2, 64);
  model->forward(random_ids(2, 3), *cache, Mode::stepwise);
  KernelClock clock(DeviceKind::cuda);
  model->forward(random_ids(2, 10), *cache, Mode::stepwise, &clock);
  std::map<std::string, std::int64_t> calls;
  for (const KernelSeconds& entry : clock.totals()) {
    EXPECT_GT(entry.seconds, 0.0) << entry.arm << " " << entry.kernel;
    calls[entry.arm + " " + entry.kernel] = entry.calls;
  }
  const std::int64_t layers = 3, steps = 10;
  EXPECT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[" shared"], steps);
  for (const std::string arm : {"exact", "replay"}) EXPECT_EQ(calls[arm + " mixer"], layers * steps);
}

TEST_F(CudaStepGraphs, TheClockTellsPartsOfMixersApart) {
  const auto model = load(testing::mamba2_config(), Dtype::bfloat16, true);
  const auto cache = model->make_cache(two_arms(RingForm::inputs), 2, 64);
  model->forward(random_ids(2, 3), *cache, Mode::stepwise);
  KernelClock whole(DeviceKind::cuda), parts(DeviceKind::cuda, KernelClock::Timing::live, KernelClock::Mixers::parts);
  const std::int64_t layers = 3, steps = 4;
  model->forward(random_ids(2, steps), *cache, Mode::stepwise, &parts);
  model->forward(random_ids(2, steps), *cache, Mode::stepwise, &whole);  // has a graph of its own
  std::map<std::string, std::int64_t> calls;
  for (const KernelSeconds& entry : parts.totals()) {
    EXPECT_GT(entry.seconds, 0.0) << entry.arm << " " << entry.kernel;
    calls[entry.arm + " " + entry.kernel] = entry.calls;
  }
  EXPECT_EQ(calls.size(), 7U);
  EXPECT_EQ(calls[" shared"], steps);
  for (const std::string arm : {"exact", "replay"})
    for (const std::string part : {"conv", "mamba2", "gated_norm"})
      EXPECT_EQ(calls[arm + " " + part], layers * steps) << arm << " " << part;
  EXPECT_EQ(whole.totals().size(), 3U);
}

TEST_F(CudaStepGraphs, StayAwayWhereTheyAreNotWanted) {
  const auto plain = load(testing::mamba2_config(), Dtype::bfloat16, false);
  const auto cache = plain->make_cache(two_arms(RingForm::inputs), 1, 8);
  EXPECT_EQ(cache->graph_obstacle(), "switched off");
  EXPECT_EQ(dynamic_cast<HybridCache&>(*cache).graphs(), nullptr);
}

TEST(StepGraphs, AreNotForTheCpu) {
  testing::TinyNemotronH tiny;
  const auto model = load_model(tiny.open(), {});
  EXPECT_EQ(model->make_cache(two_arms(RingForm::inputs), 1, 8)->graph_obstacle(), "on the CPU");
}

}  // namespace
}  // namespace replayeval
