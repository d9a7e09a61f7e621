// What the delta rule's kernels refuse, and in which words.
#include "kernels/gated_delta/gated_delta.h"
#include "kernels/kda/kda.h"
#include "tests/kernels/device_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace replayeval::testing {
namespace {

using delta_rule::RingForm;
using ::testing::HasSubstr;

// A call that is right in everything for both families; tests break one thing at a time.
struct Call {
  DeviceBuffer memory{DeviceKind::cpu, std::size_t{1} << 20};
  Device device;
  delta_rule::Shape shape{2, 4, 24, 16};
  delta_rule::ReplayForm form{4, RingForm::inputs, Route::output_only, Flush::summed, Dtype::float32};
  std::vector<std::int32_t> slots = {0, 1};
  std::vector<std::int32_t> cursor = {0, 3};
  DecodeBlock block{2, 1, slots.data()};
  delta_rule::Inputs in{memory.data(), memory.data(), memory.data(), memory.data(), memory.data(), 48, 48, 64, 4, 96,
                        Dtype::float32};
  delta_rule::Parameters parameters{memory.data<float>(), memory.data<float>(), false, {}};
  State state{memory.data(), {}, 2, nullptr};
  delta_rule::Ring ring{memory.data(), memory.data(), memory.data<float>(), memory.data<float>(), cursor.data()};
  Output out{memory.data(), 64, Dtype::float32};

  Call() { memory.upload(Bytes(memory.size())); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void exact() const { gated_delta::exact(device, shape, block, in, parameters, state, out); }
  void replay() const { gated_delta::replay(device, shape, form, block, in, parameters, state, ring, out); }
  void reconstruct() { gated_delta::reconstruct(device, shape, form, block, state, ring, memory.data<float>()); }
  void kda_exact() const { kda::exact(device, shape, block, in, parameters, state, out); }
  void kda_replay() const { kda::replay(device, shape, form, block, in, parameters, state, ring, out); }
};

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "not refused";
}

// Every executor must refuse, in the words given and under its own name.
void expect_refused(const std::function<void(Call&)>& breaking, const std::string& words) {
  Call call;
  breaking(call);
  EXPECT_THAT(refusal([&] { call.exact(); }), HasSubstr("gated_delta::exact: " + words));
  EXPECT_THAT(refusal([&] { call.replay(); }), HasSubstr("gated_delta::replay: " + words));
  EXPECT_THAT(refusal([&] { call.kda_exact(); }), HasSubstr("kda::exact: " + words));
  EXPECT_THAT(refusal([&] { call.kda_replay(); }), HasSubstr("kda::replay: " + words));
}

void expect_replay_refused(const std::function<void(Call&)>& breaking, const std::string& words) {
  Call call;
  breaking(call);
  EXPECT_NO_THROW(call.exact());
  EXPECT_THAT(refusal([&] { call.replay(); }), HasSubstr("gated_delta::replay: " + words));
  EXPECT_THAT(refusal([&] { call.reconstruct(); }), HasSubstr("gated_delta::reconstruct: " + words));
}

TEST(DeltaRuleArguments, ARightCallRuns) {
  Call call;
  EXPECT_NO_THROW(call.exact());
  EXPECT_NO_THROW(call.replay());
  EXPECT_NO_THROW(call.reconstruct());
  EXPECT_NO_THROW(call.kda_exact());
  EXPECT_NO_THROW(call.kda_replay());
  call.form.ring_form = RingForm::deltas;
  call.ring.beta = nullptr;  // which a deltas ring does without
  EXPECT_NO_THROW(call.replay());
}

TEST(DeltaRuleArguments, Shapes) {
  expect_refused([](Call& c) { c.shape.key_dim = 12; }, "key_dim is 12; allowed: multiples of 8 from 8 to 256");
  expect_refused([](Call& c) { c.shape.value_dim = 264; }, "value_dim is 264; allowed: multiples of 8 from 8 to 256");
  expect_refused([](Call& c) { c.shape.value_dim = 0; }, "value_dim is 0; allowed: multiples of 8 from 8 to 256");
  expect_refused([](Call& c) { c.shape.num_value_heads = 0; }, "num_value_heads is 0; at least 1 is needed");
  expect_refused([](Call& c) { c.shape.num_key_heads = 3; },
                 "num_value_heads 4 must be a multiple of num_key_heads, which is 3");
}

TEST(DeltaRuleArguments, BlocksPointersStridesAndTypes) {
  expect_refused([](Call& c) { c.block.tokens = 0; }, "tokens is 0; at least 1 is needed");
  expect_refused([](Call& c) { c.slots[1] = 0; }, "row 1 names slot 0, which another row of the block names too");
  expect_refused([](Call& c) { c.in.f = nullptr; }, "f is null");
  expect_refused([](Call& c) { c.parameters.dt_bias = nullptr; }, "dt_bias is null");
  expect_refused([](Call& c) { c.in.v_stride = 63; }, "v_stride is 63, smaller than the row of 64 elements");
  expect_refused([](Call& c) { c.out.y_stride = 1; }, "y_stride is 1, smaller than the row of 64 elements");
  expect_refused([](Call& c) { c.in.dtype = static_cast<Dtype>(9); }, "the inputs' dtype is no known dtype");
  expect_refused([](Call& c) { c.state.data = c.memory.data<char>() + 4; }, "the state must be aligned to 16 bytes");
  expect_refused([](Call& c) { c.parameters.numerics.beta = static_cast<delta_rule::Precision>(7); },
                 "numerics.beta is neither float32 nor compute");
}

// f has a row of another width in each family.
TEST(DeltaRuleArguments, GatesAreTheFamilys) {
  Call call;
  call.in.f_stride = 95;
  EXPECT_NO_THROW(call.exact());
  EXPECT_THAT(refusal([&] { call.kda_exact(); }),
              HasSubstr("kda::exact: f_stride is 95, smaller than the row of 96 elements"));
  Call bounded;
  bounded.parameters.gate = delta_rule::Gate::bounded;
  EXPECT_NO_THROW(bounded.kda_exact());
  EXPECT_THAT(refusal([&] { bounded.exact(); }), HasSubstr("gated_delta::exact: gate is bounded; allowed: softplus"));
  bounded.parameters.lower_bound = 0.0F;
  EXPECT_THAT(refusal([&] { bounded.kda_exact(); }),
              HasSubstr("kda::exact: lower_bound is 0.000000; needed: a negative number"));
}

TEST(DeltaRuleArguments, RingsAndForms) {
  expect_replay_refused([](Call& c) { c.form.buffer_len = 65; }, "buffer_len is 65; allowed: 1 to 64");
  expect_replay_refused([](Call& c) { c.form.ring_dtype = Dtype::float16; },
                        "ring_dtype is float16; allowed: float32, bfloat16");
  expect_replay_refused([](Call& c) { c.form.ring_form = static_cast<RingForm>(5); },
                        "ring_form is neither deltas nor inputs");
  expect_replay_refused(
      [](Call& c) {
        c.form.ring_form = RingForm::deltas;
        c.form.flush = Flush::sequential;
      },
      "flush is sequential, which needs ring_form inputs");
  expect_replay_refused([](Call& c) { c.ring.k = nullptr; }, "the ring's k is null");
  expect_replay_refused([](Call& c) { c.ring.beta = nullptr; }, "the ring's beta is null");
  expect_replay_refused([](Call& c) { c.cursor[1] = 4; },
                        "the cursor of slot 1 is 4; allowed: 0 to buffer_len - 1 = 3");
  Call call;
  EXPECT_THAT(refusal([&] { kda::advance_cursors(call.device, call.block, 65, call.cursor.data()); }),
              HasSubstr("kda::advance_cursors: buffer_len is 65; allowed: 1 to 64"));
}

// A refused call leaves memory as it was.
TEST(DeltaRuleArguments, ARefusedCallWritesNothing) {
  Call call;
  call.memory.poison();
  call.cursor[1] = 4;
  EXPECT_NE(refusal([&] { call.replay(); }), "not refused");
  EXPECT_EQ(call.memory.download(), Bytes(call.memory.size(), std::byte{0xFF}));
}

TEST(DeltaRuleArguments, CudaIsRefusedWhereTheBuildHasNone) {
  if (built_with_cuda()) GTEST_SKIP() << "this build has CUDA";
  Call call;
  call.device.kind = DeviceKind::cuda;
  try {
    call.exact();
    FAIL() << "not refused";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("gated_delta::exact: a cuda device was asked for, but this program was built without CUDA"));
  }
}

}  // namespace
}  // namespace replayeval::testing
