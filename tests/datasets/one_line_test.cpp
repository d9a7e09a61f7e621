#include "datasets/one_line.h"

#include <gtest/gtest.h>

#include <string>

namespace replayeval::datasets {
namespace {

TEST(OneLine, ShowsControlCharacters) {
  EXPECT_EQ(one_line("plain é text"), "plain é text");
  EXPECT_EQ(one_line("a\nb\tc\rd\x7f"), "a\\nb\\tc\\x0dd\\x7f");
  EXPECT_EQ(one_line(std::string_view("\0", 1)), "\\x00");
}

TEST(OneLine, CutsBetweenCharacters) {
  EXPECT_EQ(one_line(std::string(100000, 'x'), 3), "xxx... (100000 bytes)");
  EXPECT_EQ(one_line("aéb", 2), "a... (4 bytes)");  // é has two bytes
  EXPECT_EQ(one_line("aé", 3), "aé");
}

}  // namespace
}  // namespace replayeval::datasets
