#include "eval/model/model.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "eval/executors/mamba2_mixer.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/model/tiny_nemotron_h.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

using testing::exact_arm;
using testing::replay_arm;
using testing::TinyNemotronH;

constexpr std::int64_t vocab = 101;

at::Tensor random_ids(std::int64_t batch, std::int64_t tokens) {
  return at::randint(vocab, {batch, tokens}, at::TensorOptions().dtype(at::kLong));
}

class ModelTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    at::manual_seed(0);
    threads_ = at::get_num_threads();
  }
  void TearDown() override { at::set_num_threads(threads_); }
  std::unique_ptr<Model> load(Dtype compute, const TinyNemotronH& tiny = TinyNemotronH()) const {
    return load_model(tiny.open(), {GetParam(), compute});
  }
  // Logits of fresh sequences, on the CPU.
  static at::Tensor run(const Model& model, const std::vector<Arm>& arms, const at::Tensor& ids, Mode mode) {
    const auto cache = model.make_cache(arms, ids.size(0), ids.size(1));
    return model.logits(model.forward(ids, *cache, mode)).cpu();
  }

 private:
  int threads_ = 1;
};

// Largest difference as a share of the range.
double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / (b.max() - b.min()).item<double>();
}

// Of arms 0 = 2 = 5 = 6, 1 = 4, and 3.
void expect_twins(const at::Tensor& logits) {
  EXPECT_EQ(logits.scalar_type(), at::kFloat);
  for (const std::int64_t twin : {2, 5, 6}) EXPECT_TRUE(at::equal(logits[0], logits[twin])) << twin;
  EXPECT_TRUE(at::equal(logits[1], logits[4]));
  EXPECT_FALSE(at::equal(logits[0], logits[1]));
  EXPECT_FALSE(at::equal(logits[0], logits[3]));
}

TEST_P(ModelTest, IdenticalArmsGiveIdenticalLogits) {
  TinyNemotronH dense, mixture;
  mixture.add_mixture();
  const std::vector<Arm> arms = {exact_arm("a"),
                                 replay_arm("r", Dtype::bfloat16, Dtype::bfloat16),
                                 exact_arm("b"),
                                 exact_arm("16", Dtype::bfloat16),
                                 replay_arm("s", Dtype::bfloat16, Dtype::bfloat16),
                                 exact_arm("c"),
                                 exact_arm("d")};
  for (const int threads : {1, 2, 3})  // what a product's rows agree on differs by the number of threads
    for (const Dtype compute : {Dtype::float32, Dtype::bfloat16})
      for (const TinyNemotronH* tiny : {&dense, &mixture}) {
        at::set_num_threads(threads);
        const auto model = load(compute, *tiny);
        for (const std::int64_t batch : {1, 3})
          for (const Mode mode : {Mode::teacher_forced, Mode::stepwise}) {
            SCOPED_TRACE((tiny == &dense ? "dense, " : "mixture, ") + std::string(dtype_name(compute)) + ", batch " +
                         std::to_string(batch) + ", mode " + std::to_string(static_cast<int>(mode)) + ", threads " +
                         std::to_string(threads));
            expect_twins(run(*model, arms, random_ids(batch, 17), mode));
          }
      }
}

TEST_P(ModelTest, ModesAgreeOnMixtures) {
  TinyNemotronH tiny;
  tiny.add_mixture();
  const auto model = load(Dtype::float32, tiny);
  const at::Tensor ids = random_ids(2, 60);
  const std::vector<Arm> arms = {exact_arm("exact"), replay_arm("replay", Dtype::float32, Dtype::float32)};
  const at::Tensor block = run(*model, arms, ids, Mode::teacher_forced);
  EXPECT_LT(difference(run(*model, arms, ids, Mode::stepwise), block), 1e-5);
  EXPECT_LT(difference(block[1], block[0]), 1e-5);
}

TEST_P(ModelTest, ModesAgree) {
  const auto model = load(Dtype::float32);
  const at::Tensor ids = random_ids(2, 300);  // more tokens than one attention call takes
  const std::vector<Arm> arms = {exact_arm("exact"), replay_arm("replay", Dtype::float32, Dtype::float32)};
  const at::Tensor block = run(*model, arms, ids, Mode::teacher_forced);
  EXPECT_LT(difference(run(*model, arms, ids, Mode::stepwise), block), 1e-5);
  EXPECT_LT(difference(block[1], block[0]), 1e-5);
}

TEST_P(ModelTest, BlocksContinueOneAnother) {
  const auto model = load(Dtype::float32);
  const at::Tensor ids = random_ids(2, 90);
  const std::vector<Arm> arms = {replay_arm("replay", Dtype::float32, Dtype::bfloat16)};
  const at::Tensor whole = run(*model, arms, ids, Mode::teacher_forced);
  const auto cache = model->make_cache(arms, 2, 90);
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t length : {1, 40, 3, 46}) {
    parts.push_back(model->logits(model->forward(ids.narrow(1, begin, length), *cache, Mode::teacher_forced)).cpu());
    begin += length;
    EXPECT_EQ(cache->position(), begin);
  }
  EXPECT_LT(difference(at::cat(parts, 2), whole), 1e-5);
}

TEST_P(ModelTest, NoTokenSeesAnother) {
  const auto model = load(Dtype::float32);
  const at::Tensor ids = random_ids(2, 20);
  at::Tensor changed = ids.clone();
  changed[0][12] = (ids[0][12].item<std::int64_t>() + 1) % vocab;
  const at::Tensor a = run(*model, {exact_arm("a")}, ids, Mode::teacher_forced)[0];
  const at::Tensor b = run(*model, {exact_arm("a")}, changed, Mode::teacher_forced)[0];
  EXPECT_TRUE(at::equal(a[1], b[1]));                                    // neither of another sequence
  EXPECT_TRUE(at::equal(a[0].narrow(0, 0, 12), b[0].narrow(0, 0, 12)));  // nor of what comes later
  for (std::int64_t t = 12; t < 20; ++t) EXPECT_FALSE(at::equal(a[0][t], b[0][t])) << t;
}

TEST_P(ModelTest, ResetForgetsAllButTheCounts) {
  const auto model = load(Dtype::float32);
  const std::vector<Arm> arms = {exact_arm("16", Dtype::float16),
                                 replay_arm("replay", Dtype::float32, Dtype::bfloat16)};
  const auto cache = model->make_cache(arms, 2, 23);
  const at::Tensor ids = random_ids(2, 23);
  const at::Tensor first = model->forward(ids, *cache, Mode::teacher_forced);
  const auto counts = cache->storage_counts(0);
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_GT(counts[0].subnormal, 0U);
  cache->reset();
  EXPECT_EQ(cache->position(), 0);
  EXPECT_EQ(cache->storage_counts(0)[0].subnormal, counts[0].subnormal);
  EXPECT_TRUE(at::equal(model->forward(ids, *cache, Mode::teacher_forced), first));
  EXPECT_EQ(cache->storage_counts(0)[0].subnormal, 2 * counts[0].subnormal);
}

class CountingTap : public MixerTap {
 public:
  void on_mixer(std::int64_t mixer, std::size_t arm, const at::Tensor& projected) override {
    seen.push_back({mixer, static_cast<std::int64_t>(arm), projected.size(0), projected.size(1), projected.size(2)});
  }
  std::vector<std::vector<std::int64_t>> seen;
};

TEST_P(ModelTest, TapSeesEveryMixerOfEveryArm) {
  const auto model = load(Dtype::float32);
  const auto cache = model->make_cache({exact_arm("a"), exact_arm("b")}, 2, 8);
  CountingTap tap;
  KernelClock clock(GetParam());
  model->forward(random_ids(2, 5), *cache, Mode::teacher_forced, &clock, &tap);
  const std::int64_t width = model->mixers()[0]->sizes().projection;
  EXPECT_EQ(tap.seen, (std::vector<std::vector<std::int64_t>>{
                          {0, 0, 2, 5, width}, {0, 1, 2, 5, width}, {1, 0, 2, 5, width}, {1, 1, 2, 5, width}}));
  std::map<std::pair<std::string, std::string>, std::int64_t> calls;
  for (const KernelSeconds& total : clock.totals()) calls[{total.arm, total.kernel}] = total.calls;
  for (const char* arm : {"a", "b"})
    for (const char* kernel : {"conv", "mamba2", "gated_norm"}) EXPECT_EQ((calls[{arm, kernel}]), 2) << kernel;
  EXPECT_EQ((calls[{"", "attention"}]), 2);
}

TEST_P(ModelTest, RefusesBadIdsAndFullCaches) {
  const auto model = load(Dtype::float32);
  const auto cache = model->make_cache({exact_arm("a")}, 2, 8);
  const auto refuses = [&](const at::Tensor& ids, const std::vector<std::string>& parts) {
    testing::expect_error<std::invalid_argument>([&] { model->forward(ids, *cache, Mode::teacher_forced); }, parts);
    EXPECT_EQ(cache->position(), 0);
  };
  at::Tensor ids = random_ids(2, 5);
  ids[1][3] = vocab;
  refuses(ids, {"token id 101", "sequence 1, token 3", "0 to 100"});
  ids[1][3] = -1;
  refuses(ids, {"token id -1", "sequence 1, token 3"});
  refuses(random_ids(3, 2), {"[2, tokens]"});
  refuses(random_ids(2, 2).to(at::kInt), {"int64"});
  refuses(random_ids(2, 9), {"9 more tokens after 0", "capacity of 8"});
  testing::expect_error<std::invalid_argument>([&] { model->make_cache({}, 1, 8); }, {"no arms"});
  testing::expect_error<std::invalid_argument>([&] { model->make_cache({exact_arm("a")}, 0, 8); }, {"0 slots"});
  testing::expect_error<std::invalid_argument>(
      [&] { model->make_cache({replay_arm("odd", Dtype::float32, Dtype::float32, 0)}, 1, 8); },
      {"\"odd\"", "buffer_len 0"});
}

TEST_P(ModelTest, ResidualInFloat32IsHonoured) {
  TinyNemotronH tiny;
  const at::Tensor ids = random_ids(1, 16);
  const at::Tensor exact = run(*load(Dtype::float32, tiny), {exact_arm("a")}, ids, Mode::teacher_forced);
  const at::Tensor narrow = run(*load(Dtype::bfloat16, tiny), {exact_arm("a")}, ids, Mode::teacher_forced);
  tiny.config["residual_in_fp32"] = true;
  const at::Tensor wide = run(*load(Dtype::bfloat16, tiny), {exact_arm("a")}, ids, Mode::teacher_forced);
  EXPECT_FALSE(at::equal(narrow, wide));
  EXPECT_LT(difference(wide, exact), 0.05);
  EXPECT_LT(difference(narrow, exact), 0.05);
  EXPECT_TRUE(at::equal(run(*load(Dtype::float32, tiny), {exact_arm("a")}, ids, Mode::teacher_forced), exact));
}

const Mamba2Weights& weights_of(const Model& model, std::size_t mixer) {
  return dynamic_cast<const Mamba2Mixer&>(*model.mixers()[mixer]).weights();
}

TEST_P(ModelTest, DtFloorIsWhatWasAskedFor) {
  TinyNemotronH tiny;
  tiny.config["time_step_min"] = 0.3;
  const Checkpoint checkpoint = tiny.open();
  const auto published = load_model(checkpoint, {GetParam(), Dtype::float32, DtFloor::published});
  const auto transformers = load_model(checkpoint, {GetParam(), Dtype::float32, DtFloor::transformers});
  EXPECT_EQ(weights_of(*published, 0).dt_min, 0.0F);
  EXPECT_EQ(weights_of(*transformers, 0).dt_min, 0.3F);
  tiny.config["time_step_limit"] = {0.01, 0.2};
  const auto limited = load_model(tiny.open(), {GetParam(), Dtype::float32, DtFloor::published});
  EXPECT_EQ(weights_of(*limited, 1).dt_min, 0.01F);
  EXPECT_EQ(weights_of(*limited, 1).dt_max, 0.2F);
}

REPLAYEVAL_ON_EACH_DEVICE(ModelTest);

TEST(Model, CudaIsRefusedWhereThereIsNone) {
  if (built_with_cuda() && at::Context::hasCUDA()) GTEST_SKIP() << "there is a GPU";
  testing::expect_error<std::runtime_error>(
      [] {
        load_model(TinyNemotronH().open(), {DeviceKind::cuda, Dtype::float32});
      },
      {"device cuda"});
}

}  // namespace
}  // namespace replayeval
