// What the documents say: each kind's answer, found again by reading the text alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "datasets/recall/facts.h"
#include "datasets/recall/recall.h"
#include "datasets/recall/words.h"
#include "datasets/sha256.h"
#include "tests/datasets/recall/recall_tokenizers.h"

namespace replayeval::datasets {
namespace {

using testing::HasSubstr;

struct Read {
  RecallItem item;
  std::string prompt;
  std::vector<std::string> answers;
};

Read read(RecallTask& task, double depth, std::int64_t index, std::int64_t length = 2048) {
  const Tokenizer& tokenizer = *recall_tokenizer("nemotron");
  Read result;
  result.item = task.item({length, depth}, index);
  result.prompt = tokenizer.decode(result.item.prompt(), SpecialTokens::skip);
  for (const RecallAnswer& answer : result.item.answers)
    result.answers.push_back(tokenizer.decode(result.item.target(answer), SpecialTokens::skip));
  return result;
}

RecallTask task_of(const std::string& kind, const recall::RecallOptions& options = {}) {
  RecallSpec spec;
  spec.kind = kind;
  spec.lengths = {2048};
  spec.depths = {0.5};
  spec.options = options;
  return {spec, recall_tokenizer("nemotron"), "."};
}

std::vector<std::smatch> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return {std::sregex_iterator(text.begin(), text.end(), regex), {}};
}

std::string last_match(const std::string& text, const std::string& pattern) {
  return matches(text, pattern).back()[1].str();
}

TEST(NeedleText, StatesTheCodeOnce) {
  for (const std::string kind : {"needle_single", "needle_multi_key"}) {
    RecallTask task = task_of(kind);
    for (std::int64_t index = 0; index < 5; ++index) {
      const Read document = read(task, 0.3, index);
      const std::string person = last_match(document.prompt, "The secret code of (\\w+ \\w+) is$");
      const auto stated = matches(document.prompt, "The secret code of " + person + " is (\\w+ \\w+ \\d\\d)\\.");
      ASSERT_EQ(stated.size(), 1U);
      EXPECT_EQ(stated[0][1], document.answers[0]);
      EXPECT_EQ(matches(document.prompt, document.answers[0]).size(), 1U);
      EXPECT_EQ(matches(document.prompt, "The secret code of \\w+ \\w+ is \\w+").size(),
                kind == "needle_single" ? 1U : 8U);
      EXPECT_DOUBLE_EQ(document.item.chance,
                       kind == "needle_single"
                           ? 1.0 / (90.0 * std::pow(static_cast<double>(recall::words().code_words.size()), 2))
                           : 1.0 / 8);
    }
  }
}

TEST(NeedleText, OfSeveralValuesAsksForAllInOrder) {
  RecallTask task = task_of("needle_multi_value");
  const Read document = read(task, 0.2, 0);
  const auto stated = matches(document.prompt, "One of the secret codes of \\w+ \\w+ is (\\w+ \\w+ \\d\\d)\\.");
  ASSERT_EQ(stated.size(), 4U);
  EXPECT_EQ(document.answers[0],
            stated[0][1].str() + ", " + stated[1][1].str() + ", " + stated[2][1].str() + " and " + stated[3][1].str());
  EXPECT_EQ(document.item.answers[0].statements, 4);
  EXPECT_DOUBLE_EQ(document.item.chance, 1.0 / 24);
}

TEST(AssociativeRecallText, RepeatsPairsOfOneBlock) {
  RecallTask task = task_of("associative_recall");
  const Read document = read(task, 0.5, 0);
  ASSERT_EQ(document.answers.size(), 8U);
  const std::string whole = recall_tokenizer("nemotron")->decode(document.item.tokens, SpecialTokens::skip);
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, int> times;
  for (const std::smatch& pair : matches(whole, "(\\w+ \\w+) goes with (\\w+)\\.")) values[pair[1]].push_back(pair[2]);
  EXPECT_EQ(values.size(), 32U);
  int asked = 0, most = 0;
  for (const auto& [key, found] : values) {
    asked += found.size() == 2 ? 1 : 0;
    if (found.size() == 2) {
      EXPECT_EQ(found[0], found[1]) << key;
    }
    most = std::max(most, ++times[found[0]]);
  }
  EXPECT_EQ(asked, 8);
  EXPECT_DOUBLE_EQ(document.item.chance, most / 32.0);
}

TEST(VariableTrackingText, LeadsToTheNumber) {
  RecallTask task = task_of("variable_tracking");
  for (std::int64_t index = 0; index < 5; ++index) {
    const Read document = read(task, 0.1, index);
    std::map<std::string, std::string> variables;  // assignments in the order of the text must resolve at once
    for (const std::smatch& assigned : matches(document.prompt, "Let (\\w+) be (\\w+)\\.")) {
      const std::string value = assigned[2];
      ASSERT_TRUE(std::isdigit(static_cast<unsigned char>(value[0])) || variables.count(value) == 1) << value;
      EXPECT_EQ(variables.count(assigned[1]), 0U);
      variables[assigned[1]] = std::isdigit(static_cast<unsigned char>(value[0])) ? value : variables[value];
    }
    EXPECT_EQ(variables.size(), 16U);
    EXPECT_EQ(variables[last_match(document.prompt, "The value of (\\w+) is$")], document.answers[0]);
    EXPECT_EQ(document.item.answers[0].statements, 4);
    EXPECT_EQ(matches(document.prompt, document.answers[0]).size(), 1U);
  }
}

TEST(CopyingText, AsksForTheListItStated) {
  RecallTask task = task_of("copying");
  const Read document = read(task, 0.7, 0);
  EXPECT_EQ(last_match(document.prompt, "The list to remember is: ([^.]+)\\."), document.answers[0]);
  EXPECT_EQ(matches(document.prompt, document.answers[0]).size(), 1U);
  std::istringstream words(document.answers[0]);
  const std::set<std::string> different(std::istream_iterator<std::string>(words), {});
  EXPECT_EQ(different.size(), 16U);
  EXPECT_LT(document.item.chance, 1e-30);
}

TEST(StateTrackingText, FollowsEverySwap) {
  RecallTask task = task_of("state_tracking");
  std::map<std::string, int> asked_objects;
  for (std::int64_t index = 0; index < 10; ++index) {
    const Read document = read(task, 0.2, index);
    std::map<std::string, std::string> boxes;
    for (const std::smatch& held : matches(document.prompt, "Box (\\w+) holds the (\\w+)\\.")) boxes[held[1]] = held[2];
    ASSERT_EQ(boxes.size(), 5U);
    std::set<std::string> objects;
    for (const auto& [box, object] : boxes) objects.insert(object);
    const auto swaps = matches(document.prompt, "Swap box (\\w+) and box (\\w+)\\.");
    EXPECT_GT(swaps.size(), 100U);
    for (const std::smatch& swap : swaps) {
      ASSERT_NE(swap[1], swap[2]);
      std::swap(boxes.at(swap[1]), boxes.at(swap[2]));
    }
    EXPECT_EQ(boxes[last_match(document.prompt, "Now box (\\w+) holds the$")], document.answers[0]);
    EXPECT_EQ(document.item.answers[0].statements, 5 + static_cast<std::int64_t>(swaps.size()));
    EXPECT_EQ(document.item.choices.size(), 5U);
    EXPECT_EQ(objects.count(document.answers[0]), 1U);
    const auto target = document.item.target(document.item.answers[0]);
    EXPECT_THAT(document.item.choices, testing::Contains(std::vector<std::int32_t>(target.begin(), target.end())));
    EXPECT_DOUBLE_EQ(document.item.chance, 0.2);
  }
}

TEST(StateTrackingText, TurnsToSwapsAtTheDepth) {
  RecallTask task = task_of("state_tracking");
  const auto swaps = [&](double depth) { return matches(read(task, depth, 0).prompt, "Swap box").size(); };
  EXPECT_GT(swaps(0.0), 200U);
  EXPECT_NEAR(static_cast<double>(swaps(0.5)), 0.5 * static_cast<double>(swaps(0.0)), 6.0);
  EXPECT_EQ(swaps(1.0), 1U);
}

// --- facts, and datasets/recall_documents.py ------------------------------------------------------------------------

std::int64_t estimate(const recall::Segment& segment) {
  return segment.part == recall::Part::stop ? 1 : 1 + static_cast<std::int64_t>(segment.text.size()) * 10 / 34;
}

// The hash that tests/datasets/test_recall_documents.py holds the Python generator to: the same text, byte for byte.
TEST(FactsText, IsThatOfThePythonGenerator) {
  std::string text;
  for (std::uint64_t index = 0; index < 3; ++index) {
    recall::Random random(1000003 + index);
    const recall::Filler filler({}, estimate, {});
    recall::FactsDraft draft = recall::draft_facts(random, {.facts = 6, .questions = 4, .depth = {}});
    recall::fill(random, 300, filler, estimate, draft);
    text += (index == 0 ? "" : "\n") + recall::join(recall::deal(random, draft));
  }
  Sha256 digest;
  digest.update(std::as_bytes(std::span(text)));
  EXPECT_EQ(digest.hex(), "51b2a73ff901b0a1e8797ead0e325bbe5c3b6b5dd0d617b1ecd6a743272b997c");
}

TEST(FactsText, PublishedSplitMix64Values) {
  recall::Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

TEST(FactsText, EndsInItsQuestions) {
  RecallSpec spec;
  spec.kind = "facts";
  spec.lengths = {2048};
  RecallTask task(spec, recall_tokenizer("nemotron"), ".");
  std::set<double> depths;
  for (std::int64_t index = 0; index < 20; ++index) {
    const RecallItem item = task.item({2048, std::nullopt}, index);
    EXPECT_EQ(item.id, "facts/2048/any/" + std::to_string(index));
    EXPECT_EQ(item.answers.size(), 8U);
    EXPECT_GT(item.answers.front().begin, 1700);
    for (const RecallAnswer& answer : item.answers) {
      depths.insert(answer.depth);
      const auto target = item.target(answer);
      EXPECT_TRUE(std::equal(target.begin(), target.end(), item.tokens.begin() + answer.stated_begin));
    }
    EXPECT_GT(item.chance, 1.0 / 16);
    EXPECT_LT(item.chance, 0.7);
  }
  EXPECT_LT(*depths.begin(), 0.1);
  EXPECT_GT(*depths.rbegin(), 0.9);
}

}  // namespace
}  // namespace replayeval::datasets
