#include "eval/comparator/storage_totals.h"

#include <gtest/gtest.h>

namespace replayeval {
namespace {

StorageTotals counts(std::int64_t saturated, std::int64_t subnormal, std::int64_t non_finite) {
  StorageCounts of_mixer{};
  of_mixer.saturated = saturated;
  of_mixer.subnormal = subnormal;
  of_mixer.non_finite = non_finite;
  return {{of_mixer, {}}, {{}, of_mixer}};
}

void expect_equal(const StorageTotals& found, const StorageTotals& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t arm = 0; arm < found.size(); ++arm) {
    ASSERT_EQ(found[arm].size(), expected[arm].size());
    for (std::size_t mixer = 0; mixer < found[arm].size(); ++mixer) {
      EXPECT_EQ(found[arm][mixer].saturated, expected[arm][mixer].saturated);
      EXPECT_EQ(found[arm][mixer].subnormal, expected[arm][mixer].subnormal);
      EXPECT_EQ(found[arm][mixer].non_finite, expected[arm][mixer].non_finite);
    }
  }
}

TEST(StorageTotals, AddUp) {
  StorageTotals totals;
  add_counts(totals, counts(1, 20, 300));
  add_counts(totals, counts(4, 50, 600));
  expect_equal(totals, counts(5, 70, 900));
  expect_equal(counts_since(totals, counts(1, 20, 300)), counts(4, 50, 600));
}

TEST(StorageTotals, PartsWithoutMixersChangeNothing) {
  const StorageTotals none(2);
  StorageTotals totals = none;
  add_counts(totals, counts(1, 2, 3));
  expect_equal(totals, counts(1, 2, 3));
  add_counts(totals, none);
  expect_equal(totals, counts(1, 2, 3));
}

}  // namespace
}  // namespace replayeval
