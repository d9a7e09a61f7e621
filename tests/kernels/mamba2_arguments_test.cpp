// What the kernels refuse, and in which words.
#include "kernels/mamba2/mamba2.h"
#include "tests/kernels/device_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace replayeval::testing {
namespace {

using ::testing::HasSubstr;

// A call that is right in everything; tests break one thing at a time.
struct Call {
  DeviceBuffer memory{DeviceKind::cpu, std::size_t{1} << 20};
  Device device;
  mamba2::Shape shape{4, 2, 16, 24};
  mamba2::ReplayForm form{4, mamba2::Route::output_only, mamba2::Flush::summed, Dtype::float32};
  std::vector<std::int32_t> slots = {0, 1};
  std::vector<std::int32_t> cursor = {0, 3};
  mamba2::Block block{2, 1, slots.data()};
  mamba2::Inputs in{memory.data(), memory.data(), memory.data(), memory.data(), 64, 48, 48, 4, Dtype::float32};
  mamba2::Parameters parameters{memory.data<float>(), memory.data<float>(), memory.data<float>()};
  mamba2::State state{memory.data(), {}, 2, nullptr};
  mamba2::Ring ring{memory.data(), memory.data(), memory.data<float>(), cursor.data()};
  mamba2::Output out{memory.data(), 64, Dtype::float32};

  Call() { memory.upload(Bytes(memory.size())); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void exact() const { mamba2::exact(device, shape, block, in, parameters, state, out); }
  void replay() const { mamba2::replay(device, shape, form, block, in, parameters, state, ring, out); }
  void reconstruct() { mamba2::reconstruct(device, shape, form, block, parameters, state, ring, memory.data<float>()); }
};

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "not refused";
}

// Both executors must refuse, in the words given and under their own names.
void expect_refused(const std::function<void(Call&)>& breaking, const std::string& words) {
  Call call;
  breaking(call);
  EXPECT_THAT(refusal([&] { call.exact(); }), HasSubstr("mamba2::exact: " + words));
  EXPECT_THAT(refusal([&] { call.replay(); }), HasSubstr("mamba2::replay: " + words));
}

void expect_replay_refused(const std::function<void(Call&)>& breaking, const std::string& words) {
  Call call;
  breaking(call);
  EXPECT_NO_THROW(call.exact());
  EXPECT_THAT(refusal([&] { call.replay(); }), HasSubstr("mamba2::replay: " + words));
  EXPECT_THAT(refusal([&] { call.reconstruct(); }), HasSubstr("mamba2::reconstruct: " + words));
}

TEST(Mamba2Arguments, ARightCallRuns) {
  Call call;
  EXPECT_NO_THROW(call.exact());
  EXPECT_NO_THROW(call.replay());
  EXPECT_NO_THROW(call.reconstruct());
}

TEST(Mamba2Arguments, Shapes) {
  expect_refused([](Call& c) { c.shape.head_dim = 12; }, "head_dim is 12; allowed: multiples of 8 from 8 to 128");
  expect_refused([](Call& c) { c.shape.head_dim = 136; }, "head_dim is 136; allowed: multiples of 8 from 8 to 128");
  expect_refused([](Call& c) { c.shape.head_dim = 0; }, "head_dim is 0; allowed: multiples of 8 from 8 to 128");
  expect_refused([](Call& c) { c.shape.state_size = 264; }, "state_size is 264; allowed: multiples of 8 from 8 to 256");
  expect_refused([](Call& c) { c.shape.state_size = 20; }, "state_size is 20; allowed: multiples of 8 from 8 to 256");
  expect_refused([](Call& c) { c.shape.num_heads = 0; }, "num_heads is 0; at least 1 is needed");
  expect_refused([](Call& c) { c.shape.num_groups = 3; }, "num_heads 4 must be a multiple of num_groups, which is 3");
}

TEST(Mamba2Arguments, Blocks) {
  expect_refused([](Call& c) { c.block.batch = 0; }, "batch is 0; at least 1 is needed");
  expect_refused([](Call& c) { c.block.tokens = -1; }, "tokens is -1; at least 1 is needed");
  expect_refused([](Call& c) { c.slots[1] = 2; }, "row 1 names slot 2; there are 2");
  expect_refused([](Call& c) { c.slots[1] = 0; }, "row 1 names slot 0, which another row of the block names too");
  expect_refused(
      [](Call& c) {
        c.block = {3, 1, nullptr};
      },
      "batch 3 without a slot map needs as many slots, there are 2");
  expect_refused([](Call& c) { c.state.slots = 0; }, "slots is 0; at least 1 is needed");
}

TEST(Mamba2Arguments, PointersStridesAndTypes) {
  expect_refused([](Call& c) { c.in.B = nullptr; }, "B is null");
  expect_refused([](Call& c) { c.parameters.dt_bias = nullptr; }, "dt_bias is null");
  expect_refused([](Call& c) { c.out.y = nullptr; }, "y is null");
  expect_refused([](Call& c) { c.in.x_stride = 63; }, "x_stride is 63, smaller than the row of 64 elements");
  expect_refused([](Call& c) { c.out.y_stride = 1; }, "y_stride is 1, smaller than the row of 64 elements");
  expect_refused([](Call& c) { c.in.dtype = static_cast<Dtype>(9); }, "the inputs' dtype is no known dtype");
  expect_refused([](Call& c) { c.state.storage.dtype = static_cast<Dtype>(9); }, "the state's dtype is no known dtype");
  expect_refused([](Call& c) { c.state.data = c.memory.data<char>() + 4; }, "the state must be aligned to 16 bytes");
  expect_refused([](Call& c) { c.parameters.dt_max = -1.0F; },
                 "dt_min is 0.000000 and dt_max -1.000000; needed: 0 <= dt_min <= dt_max");
}

TEST(Mamba2Arguments, RingsAndForms) {
  expect_replay_refused([](Call& c) { c.form.buffer_len = 0; }, "buffer_len is 0; allowed: 1 to 64");
  expect_replay_refused([](Call& c) { c.form.buffer_len = 65; }, "buffer_len is 65; allowed: 1 to 64");
  expect_replay_refused([](Call& c) { c.form.ring_dtype = Dtype::float16; },
                        "ring_dtype is float16; allowed: float32, bfloat16");
  expect_replay_refused([](Call& c) { c.ring.x = nullptr; }, "the ring's x is null");
  expect_replay_refused([](Call& c) { c.ring.cursor = nullptr; }, "the ring's cursor is null");
  expect_replay_refused([](Call& c) { c.cursor[1] = 4; },
                        "the cursor of slot 1 is 4; allowed: 0 to buffer_len - 1 = 3");
  expect_replay_refused([](Call& c) { c.cursor[0] = -1; },
                        "the cursor of slot 0 is -1; allowed: 0 to buffer_len - 1 = 3");
  expect_replay_refused([](Call& c) { c.form.route = static_cast<mamba2::Route>(7); },
                        "route is neither output_only nor state_and_output");
  Call call;
  EXPECT_THAT(refusal([&] { mamba2::advance_cursors(call.device, call.block, 65, call.cursor.data()); }),
              HasSubstr("mamba2::advance_cursors: buffer_len is 65; allowed: 1 to 64"));
}

// A refused call leaves memory as it was.
TEST(Mamba2Arguments, ARefusedCallWritesNothing) {
  Call call;
  call.memory.poison();
  call.cursor[1] = 4;
  EXPECT_NE(refusal([&] { call.replay(); }), "not refused");
  EXPECT_EQ(call.memory.download(), Bytes(call.memory.size(), std::byte{0xFF}));
}

TEST(Mamba2Arguments, CudaIsRefusedWhereTheBuildHasNone) {
  if (built_with_cuda()) GTEST_SKIP() << "this build has CUDA";
  Call call;
  call.device.kind = DeviceKind::cuda;
  try {
    call.exact();
    FAIL() << "not refused";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("mamba2::exact: a cuda device was asked for, but this program was built without CUDA"));
  }
}

}  // namespace
}  // namespace replayeval::testing
