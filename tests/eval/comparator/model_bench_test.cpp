// What bench_model() runs between two looks at the clock.
#include "eval/comparator/model_bench.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <map>

#include "eval/model/footprint.h"
#include "eval/model/step_weights.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/tiny_nemotron_h.h"

namespace replayeval {
namespace {

// Notes every call on its way to a real model.
class Watched final : public Model {
 public:
  struct Call {
    std::string arm;
    Mode mode;
    bool clocked;
    std::int64_t position, batch, tokens;
  };
  mutable std::vector<Call> calls;

  explicit Watched(std::unique_ptr<Model> model) : model_(std::move(model)) {}

  const std::string& model_type() const override { return model_->model_type(); }
  std::int64_t vocab_size() const override { return model_->vocab_size(); }
  std::int64_t hidden_size() const override { return model_->hidden_size(); }
  std::int64_t max_positions() const override { return model_->max_positions(); }
  std::int64_t parameter_count() const override { return model_->parameter_count(); }
  const WeightTotals& weight_totals() const override { return model_->weight_totals(); }
  const ModelOptions& options() const override { return model_->options(); }
  const std::vector<std::shared_ptr<const Mixer>>& mixers() const override { return model_->mixers(); }
  const std::vector<std::int64_t>& mixer_layers() const override { return model_->mixer_layers(); }
  std::unique_ptr<DecodeCache> make_cache(const std::vector<Arm>& arms, std::int64_t slots, std::int64_t capacity,
                                          const KeyValuePageOptions& pages) const override {
    return model_->make_cache(arms, slots, capacity, pages);
  }
  at::Tensor logits(const at::Tensor& hidden) const override { return model_->logits(hidden); }
  at::Tensor forward(const at::Tensor& ids, DecodeCache& cache, Mode mode, KernelClock* clock, MixerTap* tap,
                     const std::vector<std::int32_t>& slots) const override {
    calls.push_back({cache.arms().front().name, mode, clock != nullptr, cache.position(), ids.size(0), ids.size(1)});
    return model_->forward(ids, cache, mode, clock, tap, slots);
  }

 private:
  std::unique_ptr<Model> model_;
};

Arm replay(const std::string& name, int buffer_len) {
  Arm arm;
  arm.name = name;
  arm.executor = Executor::replay;
  arm.replay.buffer_len = buffer_len;
  return arm;
}

std::vector<Arm> three_arms() {
  Arm exact;
  exact.name = "exact";
  return {exact, replay("five", 5), replay("eight", 8)};
}

// Stretches of calls of one arm, one mode and one clock.
std::vector<std::vector<Watched::Call>> stretches(const std::vector<Watched::Call>& calls) {
  std::vector<std::vector<Watched::Call>> parts;
  for (const Watched::Call& call : calls) {
    const auto* last = parts.empty() ? nullptr : &parts.back().back();
    if (last == nullptr || last->arm != call.arm || last->mode != call.mode || last->clocked != call.clocked)
      parts.emplace_back();
    parts.back().push_back(call);
  }
  return parts;
}

std::int64_t flushes(const std::vector<Watched::Call>& steps, std::int64_t buffer_len) {
  return std::count_if(steps.begin(), steps.end(),
                       [&](const Watched::Call& call) { return (call.position + 1) % buffer_len == 0; });
}

TEST(ModelBench, RoundsAreWholeRingCyclesInTurnsBehindTheContext) {
  testing::TinyNemotronH tiny;
  tiny.config["max_position_embeddings"] = 1000;
  const Watched model(load_model(tiny.open(), {}));
  ModelBenchOptions options;
  options.batches = {2};
  options.rounds = 3;
  options.context = 301;  // more than a block, and in the midst of either ring
  constexpr std::int64_t steps = 40;
  const std::vector<DecodeSpeed> rows =
      bench_model(model, describe_architecture(tiny.open()), three_arms(), options, [](const DecodeSpeed&) {});

  std::vector<std::string> order;
  std::map<std::string, std::int64_t> position;
  for (const auto& part : stretches(model.calls)) {
    const Watched::Call& first = part.front();
    std::int64_t& at = position[first.arm];
    for (const Watched::Call& call : part) {
      EXPECT_EQ(call.position, at);
      EXPECT_EQ(call.batch, 2);
      at += call.tokens;
    }
    if (first.mode == Mode::teacher_forced) {
      EXPECT_EQ(at, options.context) << first.arm;
      continue;
    }
    order.push_back(first.arm + (first.clocked ? " clocked" : ""));
    ASSERT_EQ(static_cast<std::int64_t>(part.size()), steps) << first.arm;
    EXPECT_EQ(flushes(part, 5), 8);
    EXPECT_EQ(flushes(part, 8), 5);
  }
  // Each warms up by itself, then they take turns; the clock that costs time comes last.
  const std::vector<std::string> expected = {"exact", "five",  "eight",         "exact",        "five",
                                             "eight", "exact", "five",          "eight",        "exact",
                                             "five",  "eight", "exact clocked", "five clocked", "eight clocked"};
  EXPECT_EQ(order, expected);
  ASSERT_EQ(rows.size(), 3U);
  for (const DecodeSpeed& row : rows) {
    EXPECT_EQ(row.steps_per_round, steps);
    EXPECT_EQ(row.graph_obstacle, "on the CPU");
    EXPECT_EQ(row.turns, 3);
    EXPECT_EQ(row.mixer_seconds.size(), 1U);
    EXPECT_GT(row.mixer_seconds.at(row.arm), 0.0);
    EXPECT_EQ(position[row.arm], options.context + steps * 5);
  }
}

TEST(ModelBench, StackedArmsDecodeTogetherAndAreComparedWithTheSlowerAlone) {
  testing::TinyNemotronH tiny;
  tiny.config["max_position_embeddings"] = 1000;
  const std::unique_ptr<Model> model = load_model(tiny.open(), {});
  const Architecture architecture = describe_architecture(tiny.open());
  ModelBenchOptions options;
  options.batches = {2};
  options.rounds = 1;
  options.stacked = {"eight", "exact"};
  options.read_bandwidth = 1e9;
  const std::vector<DecodeSpeed> rows =
      bench_model(*model, architecture, three_arms(), options, [](const DecodeSpeed&) {});
  ASSERT_EQ(rows.size(), 4U);
  const DecodeSpeed &exact = rows[0], &eight = rows[2], &both = rows[3];
  EXPECT_EQ(both.arm, "eight + exact");
  EXPECT_EQ(both.cache_bytes, exact.cache_bytes + eight.cache_bytes);
  EXPECT_EQ(both.mixer_seconds.size(), 2U);
  EXPECT_NEAR(both.tokens_per_second * both.step_seconds.median, 4.0, 1e-9);
  // Weights once, but for the embeddings of twice as many tokens; everything else of each.
  const StepWeights weights = step_weights(model->weight_totals(), model->vocab_size());
  const double twice = 2.0 * weight_bytes_per_step(architecture, weights, 2);
  EXPECT_NEAR(both.predicted_seconds - weight_bytes_per_step(architecture, weights, 4) / 1e9,
              exact.predicted_seconds + eight.predicted_seconds - twice / 1e9, 1e-12);
  const std::vector<StackedSpeed> stacked = stacked_speeds(rows);
  ASSERT_EQ(stacked.size(), 1U);
  const bool exact_is_slower = exact.step_seconds.median >= eight.step_seconds.median;
  EXPECT_EQ(stacked[0].slower, exact_is_slower ? "exact" : "eight");
  EXPECT_EQ(stacked[0].stacked, both.step_seconds.median);
  EXPECT_EQ(stacked[0].mixers_of_other,
            exact_is_slower ? eight.mixer_seconds.at("eight") : exact.mixer_seconds.at("exact"));
}

TEST(ModelBench, RefusesBeforeAModelIsThere) {
  const auto refused = [](const ModelBenchOptions& options, std::vector<Arm> arms, const std::string& part) {
    testing::expect_error<std::invalid_argument>([&] { check_model_bench(arms, options, 512); }, {"bench model", part});
  };
  const std::vector<Arm> arms = three_arms();
  refused({{}, 1, 0, 0}, arms, "no batch");
  refused({{1, 0}, 1, 0, 0}, arms, "batch 0");
  refused({{1}, 0, 0, 0}, arms, "0 rounds");
  refused({{1}, std::int64_t{1} << 62, 0, 0}, arms, "1 to 512");
  refused({{1}, 1, -1, 0}, arms, "context -1");
  refused({{1}, 1, 512 - 4 * 40, 0}, arms, "512 positions");
  refused({{1}, 1, 0, 0, {"exact"}}, arms, "two different");
  refused({{1}, 1, 0, 0, {"exact", "exact"}}, arms, "two different");
  refused({{1}, 1, 0, 0, {"exact", "seven"}}, arms, "'seven'");
  EXPECT_NO_THROW(check_model_bench(arms, {{1}, 1, 512 - 4 * 40 - 1, 0}, 512));
  std::vector<Arm> many;  // whose cycles have no common multiple below 2^63
  for (int length = 1; length <= 64; ++length) many.push_back(replay(std::to_string(length), length));
  refused({{1}, 1, 0, 0}, many, "512 positions");
}

}  // namespace
}  // namespace replayeval
