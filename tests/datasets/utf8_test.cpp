#include "datasets/utf8.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace replayeval::datasets {
namespace {

std::int64_t fault_offset(const std::string& bytes) {
  const auto fault = find_utf8_fault(bytes);
  return fault ? fault->offset : -1;
}

TEST(Utf8, AcceptsEveryLength) {
  EXPECT_EQ(fault_offset(""), -1);
  EXPECT_EQ(fault_offset("plain"), -1);
  EXPECT_EQ(fault_offset("\xc2\x80 \xdf\xbf"), -1);                  // U+0080, U+07FF
  EXPECT_EQ(fault_offset("\xe0\xa0\x80 \xef\xbf\xbf"), -1);          // U+0800, U+FFFF
  EXPECT_EQ(fault_offset("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"), -1);  // U+10000, U+10FFFF
  EXPECT_EQ(fault_offset(std::string("nul\0 is text", 12)), -1);
}

TEST(Utf8, RefusesWhatRfc3629Refuses) {
  EXPECT_EQ(fault_offset("ab\x80"), 2);                // a continuation byte alone
  EXPECT_EQ(fault_offset("\xc0\xaf"), 0);              // overlong '/'
  EXPECT_EQ(fault_offset("a\xc1\xbf"), 1);             // overlong
  EXPECT_EQ(fault_offset("\xe0\x80\xaf"), 0);          // overlong, three bytes
  EXPECT_EQ(fault_offset("\xf0\x80\x80\xaf"), 0);      // overlong, four bytes
  EXPECT_EQ(fault_offset("ok \xed\xa0\x80"), 3);       // surrogate U+D800
  EXPECT_EQ(fault_offset("\xf4\x90\x80\x80"), 0);      // U+110000
  EXPECT_EQ(fault_offset("\xf8\x88\x80\x80\x80"), 0);  // five bytes
  EXPECT_EQ(fault_offset("cut \xe2\x82"), 4);          // ends inside a sequence
  EXPECT_EQ(fault_offset("x\xff"), 1);
}

TEST(Utf8, SaysWhatItFound) {
  const auto fault = find_utf8_fault("caf\xe9 au lait");  // Latin-1
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->offset, 3);
  EXPECT_EQ(fault->found, "e9 20 61 75");
}

}  // namespace
}  // namespace replayeval::datasets
