// Churn: the script's events, mixers of every family through it to the bit, and that what breaks is seen.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "eval/comparator/churn/churn_workload.h"
#include "eval/comparator/churn/mixer_churn.h"
#include "eval/comparator/churn/model_churn.h"
#include "eval/model/hybrid_cache.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/executors/random_mixers.h"
#include "tests/eval/model/tiny_nemotron_h.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

WorkloadConfig small_workload(Prompt prompt = Prompt::prefill) {
  WorkloadConfig workload;
  workload.name = "churn";
  workload.kind = "churn";
  workload.prompt = prompt;
  workload.block = 4;
  ChurnConfig& churn = workload.churn.emplace();
  churn.batches = {4};
  churn.length = 30;
  churn.prompt_tokens = 11;
  churn.page_length = 3;
  churn.evict = 0.06;
  churn.save = 0.1;
  churn.pad = 0.3;
  return workload;
}

std::vector<std::int64_t> lengths_of(const WorkloadConfig& workload, std::int64_t sequences) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t number = 0; number < sequences; ++number)
    lengths.push_back(churn_sequence(workload, number).length);
  return lengths;
}

// Every sequence is decoded from its prompt to its end, whatever happens on the way.
TEST(ChurnScriptTest, EveryTokenComesInItsTurn) {
  for (const Prompt prompt : {Prompt::prefill, Prompt::decode}) {
    const WorkloadConfig workload = small_workload(prompt);
    const ChurnScript script = make_churn_script(workload, 4);
    std::vector<std::int64_t> position(6), owner(4, -1), saved(script.places, -1), ended(6);
    for (const ChurnAction& action : script.actions) {
      std::set<std::int32_t> slots;
      for (const ChurnRow& row : action.rows) {
        if (row.slot < 0) continue;
        EXPECT_TRUE(slots.insert(row.slot).second);
        std::int64_t& at = position[row.sequence];
        switch (action.what) {
          case ChurnAction::What::prefill:
            EXPECT_EQ(prompt, Prompt::prefill);
            at = action.tokens;
            break;
          case ChurnAction::What::decode:
            EXPECT_TRUE(row.begin == at || (row.begin == 0 && prompt == Prompt::decode));
            EXPECT_GE(row.begin, row.prefilled);
            at = row.begin + action.tokens;
            break;
          case ChurnAction::What::save:
            saved[action.place] = at;
            break;
          case ChurnAction::What::restore:
            at = saved[action.place];
            break;
          case ChurnAction::What::leave:
            EXPECT_EQ(at, action.tokens);
            if (at == churn_sequence(workload, row.sequence).length) ++ended[row.sequence];
        }
      }
    }
    EXPECT_EQ(ended, std::vector<std::int64_t>(6, 1));
    for (const char* event : {"admission", "one_token_chunk", "recomputation", "restore", "evict", "save"})
      EXPECT_GT(script.events.count(event), 0U) << event;
    const ChurnScript again = make_churn_script(workload, 4);
    EXPECT_EQ(again.actions.size(), script.actions.size());
  }
}

TEST(ChurnScriptTest, FollowsWhatIsWritten) {
  WorkloadConfig workload = small_workload();
  using What = ChurnEvent::What;
  workload.churn->script = {{2, What::save, 0, "x"}, {4, What::evict, 0, "x"}, {5, What::pad, 2, "x"}};
  const ChurnScript script = make_churn_script(workload, 4);
  EXPECT_EQ(script.events.at("save"), 1);
  EXPECT_EQ(script.events.at("evict"), 1);
  EXPECT_EQ(script.events.at("restore"), 1);
  std::size_t padded = 0;
  for (const ChurnAction& action : script.actions)
    padded += std::count_if(action.rows.begin(), action.rows.end(), [](const ChurnRow& row) { return row.slot < 0; });
  EXPECT_EQ(padded, 2U);
  workload.churn->script = {{2, What::evict, 99, "f.yaml:3:4"}};
  testing::expect_error<ConfigError>([&] { make_churn_script(workload, 4); }, {"f.yaml:3:4", "sequence 99", "step 2"});
  workload.churn->script = {{100000, What::evict, 0, "f.yaml:3:4"}};
  testing::expect_error<ConfigError>([&] { make_churn_script(workload, 4); }, {"f.yaml:3:4", "never comes"});
}

TEST(ChurnTallyTest, SeesABitAndTellsEventsApart) {
  const at::Tensor expected = at::ones({3, 4}), found = expected.clone();
  found[1][2] = std::nextafter(1.0F, 2.0F);
  const TokenDifferences differences = compare_tokens(found, expected);
  EXPECT_EQ(differences.differing, (std::vector<bool>{false, true, false}));
  EXPECT_GT(differences.deviation[1], 0.0);
  EXPECT_TRUE(compare_tokens(at::full({1}, -0.0), at::zeros({1})).differing[0]) << "bits, not values";
  ChurnTally tally(7);
  tally.add(
      ChurnLevel::mixer, 0,
      {{ChurnKind::admission, false, false}, {ChurnKind::restore, true, false}, {ChurnKind::restore, false, true}},
      differences);
  const std::vector<reports::ChurnCheck> checks = tally.checks({"arm"});
  ASSERT_EQ(checks.size(), 4U);
  for (const reports::ChurnCheck& check : checks) {
    EXPECT_EQ(check.holds(), check.event == "admission" || check.event == "reordered_rows") << check.event;
    EXPECT_EQ(check.compared, check.event == "restore" ? 2 : 1);
    EXPECT_EQ(check.batch, 7);
  }
}

TEST(ChurnControlTest, IsAsNarrowAsTheNarrowest) {
  EXPECT_EQ(churn_control(testing::exact_arm("a", Dtype::float16)).state_storage.dtype, Dtype::float16);
  const Arm ring = testing::replay_arm("a", Dtype::float32, Dtype::bfloat16);
  EXPECT_EQ(churn_control(ring).state_storage.dtype, Dtype::bfloat16);
  EXPECT_EQ(churn_control(ring).executor, Executor::exact);
  EXPECT_EQ(churn_control(testing::replay_arm("a", Dtype::float32, Dtype::float32)).state_storage.dtype,
            Dtype::float32);
}

class MixerChurnTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    at::manual_seed(0);
    const at::Device device(GetParam() == DeviceKind::cuda ? at::kCUDA : at::kCPU);
    mixers_.push_back(testing::random_mamba2(device));
    mixers_.push_back(testing::random_delta_rule(delta_rule::Family::gated_delta, device));
    mixers_.push_back(testing::random_delta_rule(delta_rule::Family::kda, device));
  }

  void expect_equal_bits(const WorkloadConfig& workload, std::int64_t batch, const Mixer& mixer,
                         const std::shared_ptr<const Mixer>& shared, const std::vector<Arm>& arms,
                         at::ScalarType type) {
    const std::int64_t sequences = churn_sequences(*workload.churn, batch);
    MixerChurn churn(shared, arms, testing::random_projected(mixer, sequences, workload.churn->length, type),
                     lengths_of(workload, sequences), workload.block);
    ChurnTally tally(batch);
    churn.follow(make_churn_script(workload, batch), tally);
    std::vector<std::string> names;
    for (const Arm& arm : arms) names.push_back(arm.name);
    std::set<std::string> events;
    for (const reports::ChurnCheck& check : tally.checks(names)) {
      events.insert(check.event);
      EXPECT_EQ(check.differing, 0) << mixer.family() << ", " << check.level << ", " << check.event << ", " << check.arm
                                    << ", of " << check.compared << ", " << check.max_deviation;
    }
    EXPECT_EQ(events.size(), 6U) << "some kind of event never came";
  }

  std::vector<std::shared_ptr<const Mixer>> mixers_;
};

TEST_P(MixerChurnTest, EveryKindOfArmOfEveryFamily) {
  for (const auto& mixer : mixers_)
    for (const Prompt prompt : {Prompt::prefill, Prompt::decode})
      expect_equal_bits(small_workload(prompt), 4, *mixer, mixer, testing::every_kind_of_arm(mixer->family()),
                        prompt == Prompt::prefill ? at::kFloat : at::kBFloat16);
}

TEST_P(MixerChurnTest, BatchesAroundAPowerOfTwo) {
  WorkloadConfig workload = small_workload();
  workload.churn->length = 14;
  workload.churn->prompt_tokens = 7;
  for (const auto& mixer : mixers_) {
    std::vector<Arm> arms = {testing::exact_arm("exact"), testing::replay_arm("replay", Dtype::float32, Dtype::float32),
                             testing::replay_arm("narrow", Dtype::bfloat16, Dtype::bfloat16)};
    for (Arm& arm : arms)
      if (mixer->family() != "mamba2" && arm.executor == Executor::replay) arm.ring_form = RingForm::deltas;
    for (const std::int64_t batch : {255, 256, 257})
      expect_equal_bits(workload, batch, *mixer, mixer, arms, at::kFloat);
  }
}

REPLAYEVAL_ON_EACH_DEVICE(MixerChurnTest);

class ModelChurnTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    at::manual_seed(0);
    testing::TinyNemotronH tiny;
    model_ = load_model(tiny.open(), {GetParam(), Dtype::float32});
  }
  std::unique_ptr<Model> model_;
};

TEST_P(ModelChurnTest, StaysWithTheUndisturbedSequences) {
  for (const Prompt prompt : {Prompt::prefill, Prompt::decode}) {
    const WorkloadConfig workload = small_workload(prompt);
    const std::vector<Arm> arms = {testing::exact_arm("exact"),
                                   testing::replay_arm("replay", Dtype::float32, Dtype::float32)};
    const at::Tensor ids = at::randint(model_->vocab_size(), {6, 31}, at::TensorOptions().dtype(at::kLong));
    ModelChurn churn(*model_, arms, ids, lengths_of(workload, 6), workload.block, workload.churn->page_length);
    ChurnTally tally(4);
    churn.follow(make_churn_script(workload, 4), tally);
    EXPECT_GT(churn.most_page_bytes(), 0);
    for (const std::size_t arm : {0, 1}) EXPECT_LT(tally.max_deviation(ChurnLevel::model, arm), 1e-4);
    for (const reports::ChurnCheck& check : tally.checks({"exact", "replay"}))
      EXPECT_TRUE(check.level != "prefix" || check.differing == 0) << check.arm;
    churn.follow_calm(make_calm_script(workload, 4, 6));
    ASSERT_EQ(churn.calm_deviations(0).at(4).size(), 6U);
    for (const double deviation : churn.calm_deviations(0).at(4)) EXPECT_LT(deviation, 1e-4);
  }
}

REPLAYEVAL_ON_EACH_DEVICE(ModelChurnTest);

// What is kept aside loses one thing; the check of what comes back sees just that.
TEST(SavedPrefixesTest, EveryPartIsLookedAt) {
  at::manual_seed(0);
  testing::TinyNemotronH tiny;
  const auto model = load_model(tiny.open(), {DeviceKind::cpu, Dtype::float32});
  const std::vector<Arm> arms = {testing::replay_arm("replay", Dtype::float32, Dtype::float32)};
  const at::Tensor ids = at::randint(model->vocab_size(), {2, 8}, at::TensorOptions().dtype(at::kLong));
  const auto lost = [&](const std::function<void(ArmCaches&)>& lose) {
    const auto cache = model->make_cache(arms, 2, 32);
    model->forward(ids, *cache, Mode::teacher_forced);
    auto places = model->make_cache(arms, 1, 32);
    ArmCaches& aside = dynamic_cast<HybridCache&>(*places).of(0);
    SavedPrefixes saved(std::move(places));
    saved.save(0, *cache, 0);
    lose(aside);
    ChurnTally tally(2);
    saved.restore(1, *cache, 0, tally);
    const std::vector<reports::ChurnCheck> checks = tally.checks({"replay"});
    EXPECT_EQ(checks.size(), 1U);
    EXPECT_GT(checks[0].compared, 6);
    return checks[0].differing;
  };
  EXPECT_EQ(lost([](ArmCaches&) {}), 0);
  EXPECT_EQ(lost([](ArmCaches& of) { of.cursors[0].zero_(); }), 1);
  EXPECT_EQ(lost([](ArmCaches& of) { of.mixers[0].state.zero_(); }), 1);
  EXPECT_EQ(lost([](ArmCaches& of) { of.mixers[0].conv_state.zero_(); }), 1);
  EXPECT_EQ(lost([](ArmCaches& of) { of.mixers[0].ring[0].zero_(); }), 1);
  EXPECT_EQ(lost([](ArmCaches& of) { of.attention[0].keys.zero_(); }), 1);
  EXPECT_EQ(lost([](ArmCaches& of) { of.attention[0].values.zero_(); }), 1);
}

}  // namespace
}  // namespace replayeval
