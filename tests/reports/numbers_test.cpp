#include "reports/numbers.h"

#include <gtest/gtest.h>

namespace replayeval::reports {
namespace {

TEST(Numbers, SignificantDigits) {
  EXPECT_EQ(significant(0.0, 3), "0");
  EXPECT_EQ(significant(12.18249, 6), "12.1825");
  EXPECT_EQ(significant(0.0012345, 3), "0.00123");
  EXPECT_EQ(significant(0.0009999, 2), "0.0010") << "rounds up into the range of fixed notation";
  EXPECT_EQ(significant(1.2345e-6, 2), "1.2e-06");
  EXPECT_EQ(significant(99999.0, 3), "1.00e+05");
  EXPECT_EQ(significant(12345.0, 3), "12345") << "whole digits are never dropped";
  EXPECT_EQ(significant(-0.5, 2), "-0.50");
  EXPECT_EQ(with_sign(0.25, 2), "+0.25");
  EXPECT_EQ(with_sign(0.0, 2), "0");
}

TEST(Numbers, TheIntervalDecidesTheDigits) {
  EXPECT_EQ(spread_text(spread(0.0025, 0.0021, 0.0029, 100.0)), "+0.250 [+0.210, +0.290]");
  EXPECT_EQ(spread_text(spread(1.234567, 1.2, 1.3)), "+1.235 [+1.200, +1.300]");
  EXPECT_EQ(spread_text(spread(1234.567, 1200.0, 1300.0)), "+1235 [+1200, +1300]");
}

TEST(Numbers, SmallSpreadsAreInOneNotation) {
  EXPECT_EQ(spread_text(spread(1.2e-8, -3.2e-8, 5.6e-8, 100.0)), "+1.2e-06 [-3.2e-06, +5.6e-06]");
  EXPECT_EQ(spread_text(spread(3.0e-9, -4.4e-8, 5.0e-8)), "+3e-09 [-4.4e-08, +5.0e-08]")
      << "no more digits than the interval supports";
}

TEST(Numbers, Zeros) {
  EXPECT_EQ(spread_text(spread(0.0, 0.0, 0.0)), "0 [0, 0]");
  EXPECT_EQ(spread_text(spread(0.0, -1e-9, 1e-9)), "0 [-1.0e-09, +1.0e-09]");
  EXPECT_EQ(spread_text(spread(0.0, {}, {})), "0");
}

TEST(Numbers, WhatRoundsToZeroHasNoSign) {
  EXPECT_EQ(spread_text(spread(-0.3, -23.0, 23.0)), "0 [-23, +23]");
  EXPECT_EQ(spread_text(spread(0.004, -0.51, 0.52)), "0.00 [-0.51, +0.52]");
}

TEST(Numbers, WithoutAnInterval) { EXPECT_EQ(spread_text(spread(0.00123456, {}, {}, 100.0)), "+0.1235"); }

TEST(Numbers, CountsSecondsBytes) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
  EXPECT_EQ(count_text(-100), "-100");
  EXPECT_EQ(seconds_text(0.0), "0 s");
  EXPECT_EQ(seconds_text(0.00021), "210 µs");
  EXPECT_EQ(seconds_text(0.0213), "21.3 ms");
  EXPECT_EQ(seconds_text(3.42), "3.42 s");
  EXPECT_EQ(seconds_text(125.4), "2 min 05 s");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(12.0 * 1024 * 1024), "12.0 MiB");
}

TEST(Rounded, SaysNoMoreThanItsUncertainty) {
  EXPECT_EQ(rounded(0.417333, 0.0127, 5), "0.417");
  EXPECT_EQ(rounded(84.6951, 10.4, 5), "85");
  EXPECT_EQ(rounded(99.20904, 0.0402, 6), "99.209");
  EXPECT_EQ(rounded(1.678e-4, 1.48e-5, 3), "1.68e-04");
  EXPECT_EQ(rounded(327.5, 4716.6, 5), "328") << "no decimals, but no digits before the point are hidden";
  EXPECT_EQ(rounded(0.3, 4.2, 5), "0.3");
  EXPECT_EQ(rounded(12.3456, std::nullopt, 5), "12.346");
  EXPECT_EQ(rounded(12.3456, 0.0, 5), "12.346") << "an interval without width says nothing";
  EXPECT_EQ(rounded(0.0, 0.1, 5), "0");
  EXPECT_EQ(half_width(1.0, 1.5), 0.25);
  EXPECT_EQ(half_width(1.0, std::nullopt), std::nullopt);
}

TEST(BytesOfText, UnitsOfBothKinds) {
  EXPECT_EQ(bytes_of_text("80GiB"), 80.0 * 0x1p30);
  EXPECT_EQ(bytes_of_text("1.5 TiB"), 1.5 * 0x1p40);
  EXPECT_EQ(bytes_of_text("500 MB"), 5e8);
  EXPECT_EQ(bytes_of_text("4096 B"), 4096.0);
  EXPECT_EQ(bytes_of_text("1048576TiB"), 0x1p60);
  for (const char* text : {"", "GiB", "80", "80 gib", "80GiBs", "0", "-1", "inf", "1e400", "0x10",
                           "99999999999999999999GiB", "1048577TiB"})
    EXPECT_THROW(bytes_of_text(text), std::invalid_argument) << text;
}

}  // namespace
}  // namespace replayeval::reports
