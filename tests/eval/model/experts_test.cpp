#include "eval/model/experts.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <string>

#include "eval/executors/device.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

struct Sizes {
  std::int64_t experts, chosen, in, inner, out;
};

constexpr Sizes odd = {5, 2, 44, 26, 36};   // no rows of a multiple of 16 bytes: expert by expert on CUDA, too
constexpr Sizes even = {8, 3, 40, 24, 56};  // fits the grouped product

class ExpertsTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    at::manual_seed(5);
    threads_ = at::get_num_threads();
  }
  void TearDown() override { at::set_num_threads(threads_); }

  at::Tensor put(const at::Tensor& tensor) const { return tensor.to(torch_device(GetParam())); }

  Experts random_experts(const Sizes& sizes, ExpertForm form, at::ScalarType type) const {
    const std::int64_t up = form == ExpertForm::gated_silu ? 2 * sizes.inner : sizes.inner;
    return {form, put(at::randn({sizes.experts, up, sizes.in}).div_(6.0).to(type)),
            put(at::randn({sizes.experts, sizes.out, sizes.inner}).div_(5.0).to(type))};
  }
  // Each row's experts are distinct, as a router's are.
  Routing random_routing(const Sizes& sizes, std::int64_t arms, std::int64_t rows) const {
    const at::Tensor chosen = std::get<1>(at::rand({arms, rows, sizes.experts}).topk(sizes.chosen, -1));
    return {put(chosen), put(at::rand({arms, rows, sizes.chosen}))};
  }

 private:
  int threads_ = 1;
};

// Row by row and expert by expert in float64.
at::Tensor reference(const at::Tensor& x, const Routing& routing, const Experts& experts) {
  const at::Tensor wide = x.to(at::kDouble).cpu(), up = experts.up.to(at::kDouble).cpu();
  const at::Tensor down = experts.down.to(at::kDouble).cpu();
  const at::Tensor chosen = routing.experts.cpu(), weights = routing.weights.to(at::kDouble).cpu();
  at::Tensor out = at::zeros({x.size(0), x.size(1), down.size(1)}, at::kDouble);
  for (std::int64_t arm = 0; arm < x.size(0); ++arm)
    for (std::int64_t row = 0; row < x.size(1); ++row)
      for (std::int64_t i = 0; i < chosen.size(2); ++i) {
        const auto expert = chosen[arm][row][i].item<std::int64_t>();
        at::Tensor inner = at::mv(up[expert], wide[arm][row]);
        if (experts.form == ExpertForm::gated_silu) {
          const std::int64_t half = inner.size(0) / 2;
          const at::Tensor gate = inner.narrow(0, 0, half);
          inner = gate.div(gate.neg().exp().add(1.0)).mul(inner.narrow(0, half, half));
        } else {
          inner = inner.clamp_min(0.0).square();
        }
        out[arm][row] += at::mv(down[expert], inner).mul(weights[arm][row][i]);
      }
  return out;
}

double difference(const at::Tensor& ours, const at::Tensor& exact) {
  return (ours.to(at::kDouble).cpu() - exact).abs().max().item<double>() / exact.abs().max().item<double>();
}

TEST_P(ExpertsTest, AgreesWithOneRowAtATime) {
  for (const ExpertForm form : {ExpertForm::squared_relu, ExpertForm::gated_silu})
    for (const Sizes& sizes : {odd, even})
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
        for (const std::int64_t rows : {1, 2, 19}) {
          SCOPED_TRACE(std::to_string(static_cast<int>(form)) + ", " + std::to_string(sizes.experts) + " experts, " +
                       c10::toString(type) + ", rows " + std::to_string(rows));
          const Experts experts = random_experts(sizes, form, type);
          const Routing routing = random_routing(sizes, 2, rows);
          const at::Tensor x = put(at::randn({2, rows, sizes.in}).to(type));
          const at::Tensor out = run_experts(x, routing, experts);
          ASSERT_EQ(out.scalar_type(), type);
          ASSERT_EQ(out.sizes(), (at::IntArrayRef{2, rows, sizes.out}));
          // Rounded thrice on the way: the inner products, the activation, the outputs.
          const double unit = type == at::kFloat ? 6e-8 : type == at::kHalf ? 4.9e-4 : 3.9e-3;
          EXPECT_LT(difference(out, reference(x, routing, experts)), 12 * unit);
        }
}

TEST_P(ExpertsTest, OneExpertMayTakeEveryRow) {
  const Experts experts = random_experts(even, ExpertForm::gated_silu, at::kBFloat16);
  for (const std::int64_t expert : {std::int64_t{0}, even.experts - 1}) {
    const Routing routing = {put(at::full({1, 9, 1}, expert, at::kLong)), put(at::ones({1, 9, 1}))};
    const at::Tensor x = put(at::randn({1, 9, even.in}).to(at::kBFloat16));
    EXPECT_LT(difference(run_experts(x, routing, experts), reference(x, routing, experts)), 0.05);
  }
}

TEST_P(ExpertsTest, EqualArmsHaveEqualResultsWhateverStandsBesideThem) {
  for (const int threads : {1, 2, 3})
    for (const Sizes& sizes : {odd, even})
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
        for (const std::int64_t rows : {1, 3, 7, 50}) {
          SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(sizes.experts) + " experts, " +
                       c10::toString(type) + ", rows " + std::to_string(rows));
          at::set_num_threads(threads);
          const Experts experts = random_experts(sizes, ExpertForm::squared_relu, type);
          const Routing routing = random_routing(sizes, 2, rows);
          const at::Tensor order = put(at::tensor({0, 1, 0, 0, 1}, at::kLong));
          const Routing stacked = {routing.experts.index_select(0, order), routing.weights.index_select(0, order)};
          const at::Tensor x = put(at::randn({2, rows, sizes.in}).to(type)).index_select(0, order);
          const at::Tensor out = run_experts(x, stacked, experts);
          for (const auto& [a, b] : std::vector<std::pair<int, int>>{{0, 2}, {0, 3}, {1, 4}})
            EXPECT_TRUE(at::equal(out[a], out[b])) << a << ", " << b;
          EXPECT_FALSE(at::equal(out[0], out[1]));
        }
}

REPLAYEVAL_ON_EACH_DEVICE(ExpertsTest);

}  // namespace
}  // namespace replayeval
