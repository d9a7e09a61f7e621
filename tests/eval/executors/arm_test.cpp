#include "eval/executors/arm.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/executors/arms.h"

namespace replayeval {
namespace {

using testing::exact_arm;
using testing::replay_arm;

void expect_refused(const Arm& arm, const std::vector<std::string>& parts) {
  testing::expect_error<std::invalid_argument>([&] { validate(arm); }, parts);
}

TEST(Arm, AcceptsEveryKind) {
  for (const Arm& arm : testing::every_kind_of_arm("gated_delta")) EXPECT_NO_THROW(validate(arm)) << arm.name;
}

TEST(Arm, RefusesWhatMakesNoSense) {
  Arm arm = replay_arm("odd", Dtype::float32, Dtype::bfloat16, 0);
  expect_refused(arm, {"arm \"odd\"", "buffer_len 0", "1 to 64"});
  arm.replay.buffer_len = 65;
  expect_refused(arm, {"buffer_len 65", "1 to 64"});
  arm = replay_arm("odd", Dtype::float32, Dtype::float16);
  expect_refused(arm, {"ring_storage float16", "float32 or bfloat16"});
  arm = replay_arm("odd", Dtype::float32, Dtype::float32);
  arm.ring_form = RingForm::deltas;
  arm.replay.flush = Flush::sequential;
  expect_refused(arm, {"arm \"odd\"", "flush sequential", "deltas"});
  arm = exact_arm("odd", static_cast<Dtype>(7));
  expect_refused(arm, {"state_storage.dtype 7", "float32"});
  arm = exact_arm("odd");
  arm.state_storage.overflow = static_cast<Overflow>(7);
  expect_refused(arm, {"state_storage.overflow 7", "saturate"});
  expect_refused(exact_arm(""), {"name", "empty"});
}

TEST(Arm, AnExactArmIgnoresTheRing) {
  Arm a = exact_arm("a"), b = exact_arm("b");
  b.replay.buffer_len = 0;
  EXPECT_NO_THROW(validate(b));
  EXPECT_TRUE(same_arithmetic(a, b));
  EXPECT_FALSE(to_json(b).contains("buffer_len"));
}

TEST(Arm, SameArithmeticLooksAtEveryField) {
  const Arm arm = replay_arm("a", Dtype::float32, Dtype::float32);
  const auto differs = [&](auto change) {
    Arm other = arm;
    other.name = "b";
    EXPECT_TRUE(same_arithmetic(arm, other));
    change(other);
    return !same_arithmetic(arm, other);
  };
  EXPECT_TRUE(differs([](Arm& a) { a.executor = Executor::exact; }));
  EXPECT_TRUE(differs([](Arm& a) { a.state_storage.dtype = Dtype::float16; }));
  EXPECT_TRUE(differs([](Arm& a) { a.state_storage.overflow = Overflow::saturate; }));
  EXPECT_TRUE(differs([](Arm& a) { a.ring_form = RingForm::deltas; }));
  EXPECT_TRUE(differs([](Arm& a) { a.replay.buffer_len = 6; }));
  EXPECT_TRUE(differs([](Arm& a) { a.replay.route = Route::state_and_output; }));
  EXPECT_TRUE(differs([](Arm& a) { a.replay.flush = Flush::sequential; }));
  EXPECT_TRUE(differs([](Arm& a) { a.replay.ring_dtype = Dtype::bfloat16; }));
}

TEST(Arm, JsonSpellsEveryField) {
  const Arm arm = replay_arm("r16", Dtype::float16, Dtype::bfloat16, 16);
  const auto expected = nlohmann::json::parse(R"({
    "name": "r16", "executor": "replay", "state_storage": {"dtype": "float16", "overflow": "infinity"},
    "ring_form": "inputs", "ring_storage": "bfloat16", "buffer_len": 16, "route": "output_only", "flush": "summed"})");
  EXPECT_EQ(to_json(arm), expected);
}

}  // namespace
}  // namespace replayeval
