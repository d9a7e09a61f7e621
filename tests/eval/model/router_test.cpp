#include "eval/model/router.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "eval/executors/device.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

struct RowChoice {
  std::vector<std::int64_t> experts;  // best first
  std::vector<double> weights;
};

// Indices of the `count` largest, best first.
std::vector<std::size_t> best(const std::vector<double>& values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

std::vector<double> softmax(std::vector<double> logits) {
  double sum = 0.0;
  for (double& value : logits) sum += value = std::exp(value);
  for (double& value : logits) value /= sum;
  return logits;
}

// The experts that are left after the choice of groups.
std::vector<bool> allowed_experts(const std::vector<double>& ranks, const RouterForm& form) {
  const std::size_t groups = static_cast<std::size_t>(form.groups), size = ranks.size() / groups;
  std::vector<double> sums;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::vector<double> part(ranks.begin() + static_cast<std::ptrdiff_t>(group * size),
                                   ranks.begin() + static_cast<std::ptrdiff_t>((group + 1) * size));
    double sum = 0.0;
    for (const std::size_t i : best(part, std::min<std::size_t>(2, size))) sum += part[i];
    sums.push_back(sum);
  }
  std::vector<bool> allowed(ranks.size(), false);
  for (const std::size_t group : best(sums, static_cast<std::size_t>(form.groups_chosen)))
    std::fill_n(allowed.begin() + static_cast<std::ptrdiff_t>(group * size), size, true);
  return allowed;
}

RowChoice reference(const std::vector<double>& logits, const std::vector<double>& bias, const RouterForm& form) {
  std::vector<double> scores = logits;
  if (form.scores == RouterScores::sigmoid)
    for (double& score : scores) score = 1.0 / (1.0 + std::exp(-score));
  if (form.scores == RouterScores::softmax_of_all) scores = softmax(logits);
  std::vector<double> ranks = scores;
  for (std::size_t i = 0; i < bias.size(); ++i) ranks[i] += bias[i];
  const std::vector<bool> allowed = allowed_experts(ranks, form);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (!allowed[i]) ranks[i] = -1e30;
  RowChoice choice;
  for (const std::size_t expert : best(ranks, static_cast<std::size_t>(form.chosen))) {
    choice.experts.push_back(static_cast<std::int64_t>(expert));
    choice.weights.push_back(scores[expert]);
  }
  if (form.scores == RouterScores::softmax_of_chosen) choice.weights = softmax(choice.weights);
  const double sum = std::accumulate(choice.weights.begin(), choice.weights.end(), 0.0);
  for (double& weight : choice.weights) weight *= form.scale / (form.renormalise ? sum : 1.0);
  return choice;
}

std::vector<double> doubles(const at::Tensor& row) {
  const at::Tensor wide = row.to(at::kDouble).cpu().contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

class RouterTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    at::manual_seed(3);
  }
  at::Tensor put(const at::Tensor& tensor) const { return tensor.to(torch_device(GetParam())); }
  // Logits are the inputs themselves.
  Router identity(std::int64_t experts, const RouterForm& form, const std::vector<float>& bias = {}) const {
    Router router{put(at::eye(experts)), {}, form};
    if (!bias.empty()) router.correction_bias = put(at::tensor(bias));
    return router;
  }
};

TEST_P(RouterTest, AgreesWithOneRowAtATime) {
  const std::vector<std::pair<std::string, RouterForm>> forms = {
      {"granite", {RouterScores::softmax_of_chosen, 3, 1, 1, false, 1.0}},
      {"qwen", {RouterScores::softmax_of_all, 3, 1, 1, false, 1.0}},
      {"qwen, renormalised", {RouterScores::softmax_of_all, 3, 1, 1, true, 1.0}},
      {"nemotron", {RouterScores::sigmoid, 4, 1, 1, true, 2.5}},
      {"nemotron, groups", {RouterScores::sigmoid, 4, 3, 2, true, 2.5}},
      {"nemotron, as they are", {RouterScores::sigmoid, 2, 6, 1, false, 0.5}},
  };
  const at::Tensor weight = at::randn({12, 20}).mul_(0.4);
  const at::Tensor x = at::randn({2, 37, 20});
  const at::Tensor bias = at::randn({12}).mul_(0.2);
  const at::Tensor logits = at::matmul(x.to(at::kDouble), weight.t().to(at::kDouble));
  for (const auto& [name, form] : forms) {
    SCOPED_TRACE(name);
    const bool biased = form.scores == RouterScores::sigmoid;
    const Routing routing = route(put(x), {put(weight), biased ? put(bias) : at::Tensor(), form});
    ASSERT_EQ(routing.weights.scalar_type(), at::kFloat);
    for (std::int64_t arm = 0; arm < 2; ++arm)
      for (std::int64_t row = 0; row < 37; ++row) {
        const RowChoice expected =
            reference(doubles(logits[arm][row]), biased ? doubles(bias) : std::vector<double>(), form);
        const std::vector<double> experts = doubles(routing.experts[arm][row]),
                                  weights = doubles(routing.weights[arm][row]);
        for (std::size_t i = 0; i < expected.experts.size(); ++i) {
          EXPECT_EQ(static_cast<std::int64_t>(experts[i]), expected.experts[i]);
          EXPECT_NEAR(weights[i], expected.weights[i], 2e-6);
        }
      }
  }
}

TEST_P(RouterTest, CorrectionBiasChoosesButDoesNotWeigh) {
  const Router router = identity(4, {RouterScores::sigmoid, 1, 1, 1, false, 1.0}, {0, 0, 0, 10});
  const Routing routing = route(put(at::tensor({3.0F, 2.0F, 1.0F, 0.0F}).view({1, 1, 4})), router);
  EXPECT_EQ(routing.experts.item<std::int64_t>(), 3);
  EXPECT_EQ(routing.weights.item<float>(), 0.5F);
}

TEST_P(RouterTest, GroupsAreRankedByTheirBestTwo) {
  // The best expert of all stands beside a poor one: its group loses.
  const Router router = identity(6, {RouterScores::sigmoid, 2, 2, 1, false, 1.0});
  const Routing routing = route(put(at::tensor({4.0F, -6.0F, -5.0F, 1.0F, 1.5F, -9.0F}).view({1, 1, 6})), router);
  EXPECT_EQ(doubles(routing.experts.flatten()), (std::vector<double>{4, 3}));
}

TEST_P(RouterTest, LogitsHaveTheTypeOfTheRouter) {
  // 1 + 2^-9 is 1 in bfloat16: a router of that type sees two equal logits, one of float32 does not.
  Router router = identity(2, {RouterScores::softmax_of_chosen, 2, 1, 1, false, 1.0});
  const at::Tensor x = put(at::tensor({1.0F, 0.5F}).view({1, 1, 2}).to(at::kBFloat16));
  router.weight[1][0] = 0.5F + 1.0F / 512.0F;
  EXPECT_NE(route(x, router).weights[0][0][0].item<float>(), 0.5F);
  router.weight = router.weight.to(at::kBFloat16);
  EXPECT_EQ(route(x, router).weights[0][0][0].item<float>(), 0.5F);
}

TEST_P(RouterTest, EqualArmsHaveEqualRoutings) {
  for (const std::int64_t rows : {1, 5, 33}) {
    const at::Tensor one = at::randn({rows, 44}), other = at::randn({rows, 44});
    const at::Tensor x = put(at::stack({one, other, one, one, other}));
    const Router router{put(at::randn({10, 44})), put(at::randn({10})), {RouterScores::sigmoid, 3, 2, 1, true, 1.7}};
    const Routing routing = route(x, router);
    for (const auto& [a, b] : std::vector<std::pair<int, int>>{{0, 2}, {0, 3}, {1, 4}}) {
      EXPECT_TRUE(at::equal(routing.experts[a], routing.experts[b])) << rows;
      EXPECT_TRUE(at::equal(routing.weights[a], routing.weights[b])) << rows;
    }
    EXPECT_FALSE(at::equal(routing.weights[0], routing.weights[1]));
  }
}

REPLAYEVAL_ON_EACH_DEVICE(RouterTest);

}  // namespace
}  // namespace replayeval
