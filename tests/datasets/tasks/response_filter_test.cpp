#include "datasets/tasks/response_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datasets/error.h"
#include "datasets/tasks/text_match.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ResponseFilter filter(const std::string& steps) {
  const std::string list = R"([{"name": "f", "filter": )" + steps + "}]";
  return {parse_filters(OrderedJson::parse(list), "test").at(0), "task"};
}

std::vector<std::string> filtered(const std::string& steps, const std::vector<std::string>& texts) {
  return filter(steps).apply(texts).texts;
}

TEST(ResponseFilter, Regex) {
  const std::string flexible =
      R"x([{"function": "regex", "group_select": -1, "regex_pattern": "(-?[$0-9.,]{2,})|(-?[0-9]+)"}])x";
  EXPECT_THAT(filtered(flexible, {"5 or 42", "7", "none"}), ElementsAre("42", "7", "[invalid]"));
  const std::string strict =
      R"x([{"function": "regex", "regex_pattern": "#### (\\-?[0-9\\.\\,]+)", "fallback": "?"}])x";
  EXPECT_THAT(filtered(strict, {"#### 1,000\n#### 2", "1000"}), ElementsAre("1,000", "?"));
  EXPECT_THAT(filtered(R"([{"function": "regex"}])", {"x #### -3"}), ElementsAre("-3"));
  EXPECT_THAT(filtered(R"x([{"function": "regex", "regex_pattern": "(a)|(b)|c"}])x", {"c"}), ElementsAre("[invalid]"));
}

TEST(ResponseFilter, OneAfterTheOther) {
  const std::string vote =
      R"([{"function": "remove_whitespace"}, {"function": "lowercase"}, {"function": "majority_vote"}, {"function": "take_first"}])";
  const FilteredTexts voted = filter(vote).apply({"b", " A", "a\n", "B", "c"});
  EXPECT_THAT(voted.texts, ElementsAre("b"));  // as often as "a", and before it
  EXPECT_TRUE(voted.single);
  EXPECT_THAT(filtered(R"([{"function": "take_first_k", "k": 2}])", {"a", "b", "c"}), ElementsAre("a", "b"));
}

TEST(ResponseFilter, SaysWhatIsWrong) {
  const auto message = [](const std::string& steps) {
    return message_of<datasets::DataError>([&] { filter(steps).apply({"a"}); });
  };
  EXPECT_THAT(message(R"([{"function": "map"}])"),
              HasSubstr("task: filter 'f': map: is not supported; expected one of lowercase, majority_vote, regex"));
  EXPECT_EQ(message(R"([{"function": "take_first"}, {"function": "lowercase"}])"),
            "task: filter 'f': lowercase: stands behind take_first; expected it before");
  EXPECT_THAT(message(R"([{"function": "regex", "pattern": "x"}])"), HasSubstr("'pattern' is no option"));
  EXPECT_THAT(message(R"x([{"function": "regex", "regex_pattern": "("}])x"), HasSubstr("is not a regular expression"));
  EXPECT_THAT(message(R"([{"function": "take_first_k", "k": 2}])"), HasSubstr("found 1 responses, expected 2 or more"));
}

TEST(TextMatch, ExactMatchIgnoresWhatItIsTold) {
  const auto equal = [](const std::string& options, const std::string& left, const std::string& right) {
    return ExactMatch(OrderedJson::parse(options), "test").equal(left, right);
  };
  EXPECT_FALSE(equal("{}", "a", "A"));
  EXPECT_TRUE(equal(R"({"ignore_case": true})", "İ ΟΔΟΣ", "i\u0307 οδος"));
  EXPECT_TRUE(equal(R"({"ignore_punctuation": true})", "1,000.", "1000"));
  EXPECT_TRUE(equal(R"({"ignore_numbers": true})", "a1", "a2"));
  EXPECT_TRUE(equal(R"({"regexes_to_ignore": [",", "\\.$"]})", "1,000.", "1000"));
  EXPECT_FALSE(equal(R"({"regexes_to_ignore": ["A"], "ignore_case": true})", "aA", ""));  // regexes come first
  EXPECT_THAT(message_of<datasets::DataError>([&] { equal(R"({"ignore_case": 1})", "", ""); }),
              HasSubstr("test.ignore_case: found 1, expected true or false"));
}

TEST(TextMatch, ContainsAndF1) {
  EXPECT_TRUE(contains("It is in PARIS.", "Paris"));
  EXPECT_FALSE(contains("It is in Pxris.", "P.ris"));
  EXPECT_DOUBLE_EQ(word_f1("The quick, brown fox", "a quick fox"), 0.8);
  EXPECT_DOUBLE_EQ(word_f1("fox fox", "fox"), 2.0 / 3);
  EXPECT_EQ(word_f1("the", "a"), 1);
  EXPECT_EQ(word_f1("fox", "the"), 0);
}

}  // namespace
}  // namespace replayeval::tasks
