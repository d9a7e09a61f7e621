#include "eval/comparator/finite_only.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace replayeval {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FiniteOnly, LeavesOutWhatIsNotAndCountsIt) {
  reports::Workload result;
  FiniteOnly numbers(result);
  numbers.put("a", "ppl", reports::Metric{2.0, 1.0, INFINITY, 5});
  numbers.put("b", "ppl", reports::Metric{INFINITY, 1.0, INFINITY, 5});
  numbers.put("c", "ppl", reports::Metric{NAN, {}, {}, 5});
  numbers.put("a", "acc", reports::Metric{0.5, 0.25, 0.75, 5});
  numbers.put("b", "ppl", reports::Delta{0.5, -INFINITY, 1.0, 0.25, 0.95, "t"});
  numbers.put("c", "ppl", reports::Delta{-INFINITY, {}, {}, {}, {}, "t"});
  EXPECT_EQ(result.arms.at("a").metrics.at("ppl").value, 2.0);
  EXPECT_FALSE(result.arms.at("a").metrics.at("ppl").low || result.arms.at("a").metrics.at("ppl").high);
  EXPECT_EQ(result.arms.at("a").metrics.at("acc").high, 0.75);
  EXPECT_FALSE(result.arms.contains("b") || result.arms.contains("c"));
  const reports::Delta& delta = result.deltas.at("b").at("ppl");
  EXPECT_EQ(delta.value, 0.5);
  EXPECT_FALSE(delta.low || delta.high || delta.confidence);
  EXPECT_EQ(delta.p_value, 0.25);
  EXPECT_FALSE(result.deltas.contains("c"));
  EXPECT_THAT(
      numbers.warnings(),
      ElementsAre("ppl: 2 values not finite, left out", "the difference of ppl: 1 value not finite, left out",
                  "ppl: 1 interval not finite, left out", "the difference of ppl: 1 interval not finite, left out"));
}

TEST(FiniteOnly, HasNothingToSayOfFiniteNumbers) {
  reports::Workload result;
  FiniteOnly numbers(result);
  numbers.put("a", "acc", reports::Metric{0.5, {}, {}, 5});
  EXPECT_THAT(numbers.warnings(), IsEmpty());
}

}  // namespace
}  // namespace replayeval
