// What holds of every kind and tokenizer.
#include "datasets/recall/recall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "datasets/sha256.h"
#include "tests/datasets/recall/recall_tokenizers.h"

namespace replayeval::datasets {
namespace {

using testing::HasSubstr;

RecallSpec spec_of(const std::string& kind, std::vector<std::int64_t> lengths = {1024}) {
  RecallSpec spec;
  spec.kind = kind;
  spec.lengths = std::move(lengths);
  spec.depths = {0.0, 0.5, 1.0};
  spec.items = 2;
  return spec;
}

RecallTask task_of(const RecallSpec& spec, const std::string& tokenizer = "nemotron",
                   const std::filesystem::path& root = ".") {
  return {spec, recall_tokenizer(tokenizer), root};
}

std::string text_of(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  return tokenizer.decode(ids, SpecialTokens::skip);
}

std::int64_t occurrences(std::string_view text, std::string_view part) {
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct Setting {
  std::string kind, tokenizer;
};

std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const std::string& kind : recall_kinds())
    for (const char* tokenizer : {"nemotron", "qwen", "bytes"}) settings.push_back({kind, tokenizer});
  return settings;
}

class EveryKind : public testing::TestWithParam<Setting> {
 protected:
  // Every kind fits into these; bytes need more of them.
  std::vector<std::int64_t> lengths() const {
    return GetParam().tokenizer == "bytes" ? std::vector<std::int64_t>{4096, 6001}
                                           : std::vector<std::int64_t>{1024, 1311, 4096};
  }
  RecallTask task() const { return task_of(spec_of(GetParam().kind, lengths()), GetParam().tokenizer); }
  const Tokenizer& tokenizer() const { return *recall_tokenizer(GetParam().tokenizer); }
};

TEST_P(EveryKind, HasExactLengthsAndAnswersAtTheEnd) {
  RecallTask recall = task();
  ASSERT_EQ(recall.cells().size(), lengths().size() * 3);
  for (const RecallCell& cell : recall.cells()) {
    const RecallItem item = recall.item(cell, 1);
    EXPECT_EQ(static_cast<std::int64_t>(item.tokens.size()), cell.length) << item.id;
    EXPECT_EQ(item.length, cell.length);
    ASSERT_FALSE(item.answers.empty());
    std::int64_t behind = 0;
    for (const RecallAnswer& answer : item.answers) {
      EXPECT_LT(behind, answer.begin);
      EXPECT_LT(answer.begin, answer.end);
      EXPECT_LT(0, answer.stated_begin);
      EXPECT_LT(answer.stated_begin, answer.stated_end);
      EXPECT_LT(answer.stated_end, answer.begin);
      EXPECT_GE(answer.statements, 1);
      behind = answer.end;
    }
    EXPECT_EQ(behind, cell.length - 1) << "the full stop of the last answer ends the document";
    EXPECT_EQ(item.prompt().size() + item.continuation().size(), item.tokens.size());
    EXPECT_GT(item.chance, 0.0);
    EXPECT_LT(item.chance, 0.7);
  }
}

TEST_P(EveryKind, StaysInsideTheVocabularyAndBeginsAsTextsDo) {
  RecallTask recall = task();
  for (const RecallCell& cell : recall.cells()) {
    const RecallItem item = recall.item(cell, 0);
    EXPECT_GE(*std::min_element(item.tokens.begin(), item.tokens.end()), 0);
    EXPECT_LT(*std::max_element(item.tokens.begin(), item.tokens.end()), tokenizer().vocab_size());
    if (tokenizer().bos_id()) {
      EXPECT_EQ(item.tokens.front(), *tokenizer().bos_id());
      EXPECT_EQ(std::count(item.tokens.begin(), item.tokens.end(), *tokenizer().bos_id()), 1);
    }
  }
}

// Parts put together must be what the tokenizer makes of the whole.
TEST_P(EveryKind, IsTheTokenizersOwnIdsOfItsText) {
  RecallTask recall = task();
  const RecallItem item = recall.item(recall.cells()[1], 0);
  const std::string text = text_of(tokenizer(), item.tokens);
  EXPECT_EQ(item.tokens, tokenizer().add_special_tokens(tokenizer().encode(text)));
}

TEST_P(EveryKind, DependsOnSeedLengthDepthAndIndexAndNothingElse) {
  RecallTask recall = task(), again = task();
  const std::vector<RecallCell> cells = recall.cells();
  const RecallItem item = recall.item(cells[1], 5);
  for (int i = 0; i < 5; ++i) again.item(cells[0], i);  // what was made before does not matter
  EXPECT_EQ(item.tokens, again.item(cells[1], 5).tokens);
  EXPECT_NE(item.tokens, recall.item(cells[1], 6).tokens);
  RecallSpec other = recall.spec();
  other.seed = 1;
  EXPECT_NE(item.tokens, task_of(other, GetParam().tokenizer).item(cells[1], 5).tokens);
  RecallSpec sparse = recall.spec();
  sparse.lengths = {cells[1].length};
  sparse.depths = {0.5};
  sparse.items = 999;
  sparse.name = "renamed";
  EXPECT_EQ(item.tokens, task_of(sparse, GetParam().tokenizer).item(cells[1], 5).tokens);
}

TEST_P(EveryKind, StatesTheAnswerBeforeItAsks) {
  RecallTask recall = task();
  for (const RecallCell& cell : recall.cells()) {
    const RecallItem item = recall.item(cell, 0);
    const std::string prompt = text_of(tokenizer(), item.prompt());
    for (const RecallAnswer& answer : item.answers) {
      const std::string target = text_of(tokenizer(), item.target(answer));
      const std::string value = target.substr(target.find_first_not_of(' '));
      if (item.kind == "needle_multi_value" || item.kind == "copying") continue;  // tested with their text
      EXPECT_GE(occurrences(prompt, value), 1) << item.id << ": " << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Recall, EveryKind, testing::ValuesIn(all_settings()),
                         [](const auto& setting) { return setting.param.kind + "_" + setting.param.tokenizer; });

// The share of filler before what is asked for, from the places in the document.
TEST(RecallDepth, IsWhereItSays) {
  for (const std::string kind : {"needle_single", "copying", "associative_recall"}) {
    RecallSpec spec = spec_of(kind, {4096});
    spec.depths = {0.0, 0.1, 0.37, 0.5, 0.9, 1.0};
    RecallTask recall = task_of(spec);
    for (const RecallCell& cell : recall.cells()) {
      const RecallItem item = recall.item(cell, 0);
      std::int64_t first = item.length, last = 0;  // of all values asked for
      for (const RecallAnswer& answer : item.answers) {
        first = std::min(first, answer.stated_begin);
        last = std::max(last, answer.stated_end);
      }
      // With 8 of 32 pairs asked for, the block reaches some pairs further on either side.
      const double slack = kind == "associative_recall" ? 150.0 : 80.0;
      const auto question = static_cast<double>(item.answers.front().stated_begin) / item.answers.front().depth;
      EXPECT_NEAR(static_cast<double>(first), *cell.depth * (question - static_cast<double>(last - first)), slack)
          << item.id;
    }
  }
}

TEST(RecallDepth, OfChainsAndSwapsIsWhereTheyBegin) {
  for (const std::string kind : {"variable_tracking", "needle_multi_value", "needle_multi_key", "state_tracking"}) {
    RecallSpec spec = spec_of(kind, {8192});
    spec.depths = {0.0, 0.25, 0.5, 0.75};
    RecallTask recall = task_of(spec);
    for (const RecallCell& cell : recall.cells()) {
      const RecallItem item = recall.item(cell, 0);
      EXPECT_NEAR(item.answers.front().depth, *cell.depth, 0.03) << item.id;
    }
  }
}

TEST(RecallDepth, OfFactsIsThatOfTheFactsAskedFor) {
  RecallSpec spec = spec_of("facts", {8192});
  spec.depths = {0.0, 0.5, 1.0};
  spec.options.facts = 64;
  spec.options.questions = 4;
  RecallTask recall = task_of(spec);
  for (const RecallCell& cell : recall.cells()) {
    for (const RecallAnswer& answer : recall.item(cell, 0).answers) EXPECT_NEAR(answer.depth, *cell.depth, 0.12);
  }
}

TEST(RecallKinds, NoTwoAreAlike) {
  std::set<std::vector<std::int32_t>> documents;
  std::set<std::string> questions;
  for (const std::string& kind : recall_kinds()) {
    RecallTask recall = task_of(spec_of(kind));
    const RecallItem item = recall.item(recall.cells()[1], 0);
    documents.insert(item.tokens);
    const std::string prompt = text_of(*recall_tokenizer("nemotron"), item.prompt());
    questions.insert(prompt.substr(prompt.size() - 12));
  }
  EXPECT_EQ(documents.size(), recall_kinds().size());
  EXPECT_EQ(questions.size(), recall_kinds().size());
}

TEST(Recall, ReachesItsGreatestLength) {
  for (const std::string& kind : recall_kinds()) {
    RecallSpec spec = spec_of(kind, {longest_recall});
    RecallTask recall = task_of(spec);
    EXPECT_EQ(recall.item({longest_recall, 0.5}, 0).tokens.size(), static_cast<std::size_t>(longest_recall)) << kind;
  }
}

TEST(Recall, FitsEveryLengthFromTheShortestOn) {
  RecallTask recall = task_of(spec_of("needle_single"));
  std::int64_t fit = 0;
  for (std::int64_t length = 20; length < 200; ++length) {
    try {
      EXPECT_EQ(static_cast<std::int64_t>(recall.item({length, 0.5}, 0).tokens.size()), length);
      ++fit;
    } catch (const DataError&) {
      EXPECT_LT(length, 70);
    }
  }
  EXPECT_GT(fit, 130);
}

TEST(Recall, TakesFillerFromAHaystack) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "Sentence number " + std::to_string(i) + " of the haystack tells of nothing at all.\nA heading\n";
  folder.write("hay.txt", text);
  RecallSpec spec = spec_of("needle_single");
  spec.haystack = {parse_text_source("hay.txt", "haystack")};
  RecallTask recall = task_of(spec, "nemotron", folder.path());
  const RecallItem item = recall.item({1024, 0.5}, 0);
  const std::string document = text_of(*recall_tokenizer("nemotron"), item.tokens);
  EXPECT_EQ(item.tokens.size(), 1024U);
  EXPECT_GT(occurrences(document, "of the haystack tells"), 20);
  EXPECT_EQ(occurrences(document, "heading"), 0);
  EXPECT_EQ(recall.describe()["haystack"][0]["documents"], 1);
}

TEST(Recall, DescribesWhatDecidesItsTokens) {
  RecallSpec spec = spec_of("needle_multi_key");
  spec.seed = 7;
  const nlohmann::json description = task_of(spec).describe();
  EXPECT_EQ(description["kind"], "needle_multi_key");
  EXPECT_EQ(description["seed"], 7);
  EXPECT_EQ(description["needles"], 8);
  EXPECT_EQ(description["generator"], 1);
  EXPECT_EQ(description["tokenizer"]["sha256"], recall_tokenizer("nemotron")->sha256());
  EXPECT_FALSE(description.contains("pairs"));
}

// Scores are compared across machines and versions: a changed generator must be a decision, and raise
// generator_version.
TEST(Recall, TokensOfASeedAreFixed) {
  Sha256 digest;
  for (const std::string& kind : recall_kinds()) {
    RecallTask recall = task_of(spec_of(kind));
    for (const RecallCell& cell : recall.cells()) {
      const RecallItem item = recall.item(cell, 0);
      digest.update(std::as_bytes(std::span(item.tokens)));
    }
  }
  EXPECT_EQ(digest.hex(), "1f341ee11d306d59f87361973224cf5734faaee37cd1eb2280c793b6f7b02828");
}

TEST(RecallSpec, ComesBackFromItsJson) {
  const nlohmann::json object = {{"kind", "variable_tracking"}, {"lengths", {2048, 4096}}, {"hops", 2}, {"seed", 3}};
  const RecallSpec spec = parse_recall(object, "x");
  EXPECT_EQ(spec.name, "variable_tracking");
  EXPECT_EQ(spec.depths.size(), 5U);
  EXPECT_EQ(spec.options.hops, 2);
  const nlohmann::json json = to_json(spec);
  EXPECT_EQ(to_json(parse_recall(json, "x")), json);
  EXPECT_TRUE(parse_recall({{"kind", "facts"}, {"lengths", {512}}}, "x").depths.empty());
}

TEST(RecallSpec, RefusesBadInput) {
  const auto message = [](nlohmann::json object) {
    return message_of([&] { parse_recall(object, "run.yaml: data"); });
  };
  const auto with = [&](const char* key, nlohmann::json value) {
    nlohmann::json object = {{"kind", "copying"}, {"lengths", {512}}};
    object[key] = std::move(value);
    return message(object);
  };
  EXPECT_THAT(message(3), HasSubstr("run.yaml: data: found 3, expected an object"));
  EXPECT_THAT(message({{"lengths", {512}}}),
              HasSubstr("data.kind: missing, expected one of facts, associative_recall"));
  EXPECT_THAT(message({{"kind", "copying"}}), HasSubstr("data.lengths: missing"));
  EXPECT_THAT(with("kind", "copy"), HasSubstr("data.kind: found 'copy', expected one of facts"));
  EXPECT_THAT(with("pairs", 3), HasSubstr("data.pairs: unknown key of copying; expected one of kind, name"));
  EXPECT_THAT(with("lengths", {0}), HasSubstr("data.lengths: found 0, expected a whole number from 1 to 131072"));
  EXPECT_THAT(with("lengths", {131073}), HasSubstr("data.lengths: found 131073"));
  EXPECT_THAT(with("lengths", 512), HasSubstr("data.lengths: found 512, expected a list"));
  EXPECT_THAT(with("lengths", {1.5}), HasSubstr("data.lengths: found 1.5, expected a whole number"));
  EXPECT_THAT(with("lengths", nlohmann::json::array()), HasSubstr("data.lengths: found none"));
  EXPECT_THAT(with("depths", {1.1}), HasSubstr("data.depths: found 1.1, expected numbers from 0 to 1"));
  EXPECT_THAT(with("depths", {"deep"}), HasSubstr("data.depths: found \"deep\""));
  EXPECT_THAT(with("depths", nlohmann::json::array()), HasSubstr("data.depths: found none"));
  EXPECT_THAT(with("depths", {0.5, 0.25, 0.5}), HasSubstr("data.depths: found 0.5 again"));
  EXPECT_THAT(with("depths", {0.5, 0.5000001}), HasSubstr("again, to six decimals, expected each depth once"));
  EXPECT_THAT(with("lengths", {64, 512, 64}), HasSubstr("data.lengths: found 64 again, expected each length once"));
  EXPECT_THAT(with("items", 0), HasSubstr("data.items: found 0"));
  EXPECT_THAT(with("seed", -1),
              HasSubstr("data.seed: found -1, expected a whole number from 0 to 9223372036854775807"));
  EXPECT_THAT(with("name", ""), HasSubstr("data.name: found \"\", expected a name of at most 64 letters"));
  EXPECT_THAT(with("name", "a/b|c\n`<b>"), HasSubstr("data.name: found \"a/b|c\\n`<b>\", expected a name"));
  EXPECT_THAT(with("words", 81), HasSubstr("data.words: found 81, expected a whole number from 1 to 80"));
  EXPECT_THAT(with("name", 1), HasSubstr("data.name: found 1, expected a string"));
  EXPECT_THAT(with("haystack", {7}), HasSubstr("data.haystack[0]"));
  EXPECT_THAT(message({{"kind", "facts"}, {"lengths", {512}}, {"facts", 4}}),
              HasSubstr("data.questions: found 8, expected a whole number from 1 to 4"));
}

TEST(Recall, RefusesWhatDoesNotFit) {
  for (const std::string& kind : recall_kinds()) {
    RecallSpec spec = spec_of(kind, {20});
    RecallTask recall = task_of(spec);
    EXPECT_THAT(message_of([&] {
                  recall.item({20, 0.5}, 0);
                }),
                testing::AllOf(HasSubstr("recall '" + kind + "', length 20: "), HasSubstr("or more")));
  }
}

// A number in a message that follows `words`.
std::int64_t number_behind(const std::string& message, const std::string& words) {
  return std::stoll(message.substr(message.find(words) + words.size()));
}

// The length that the message names holds all items, every one of which one token less does not.
TEST(Recall, LengthsAreCheckedForEveryItem) {
  for (const std::string& kind : recall_kinds()) {
    RecallSpec spec = spec_of(kind, {1024, 20});
    spec.items = 6;
    const std::string message = message_of([&] { task_of(spec).check_lengths(); });
    EXPECT_THAT(message, HasSubstr("recall '" + kind + "': lengths: found 20, expected ")) << kind;
    const std::int64_t enough = number_behind(message, "expected ");
    spec.lengths = {enough};
    RecallTask fits = task_of(spec);
    EXPECT_EQ(message_of([&] { fits.check_lengths(); }), "") << kind;
    for (const RecallCell& cell : fits.cells())
      for (std::int64_t index = 0; index < spec.items; ++index)
        EXPECT_EQ(fits.item(cell, index).tokens.size(), static_cast<std::size_t>(enough)) << kind;
  }
}

// Of a length that most items fit into: the check finds just those that item() would not make.
TEST(Recall, TheCheckAgreesWithTheItems) {
  for (const std::string& kind : recall_kinds()) {
    RecallSpec spec = spec_of(kind, {20});
    spec.items = 1;
    const std::int64_t about = number_behind(message_of([&] { task_of(spec).check_lengths(); }), "expected ");
    std::int64_t refused = 0;
    for (const std::int64_t less : {1, 4, 12})
      for (spec.seed = 0; spec.seed < 8; ++spec.seed) {
        spec.lengths = {about - less};
        RecallTask task = task_of(spec);
        const bool fits = message_of([&] { task.check_lengths(); }).empty();
        const bool made = message_of([&] {
                            for (const RecallCell& cell : task.cells()) task.item(cell, 0);
                          }).empty();
        EXPECT_EQ(fits, made) << kind << " of seed " << spec.seed;
        refused += fits ? 0 : 1;
      }
    EXPECT_GT(refused, 0) << kind;
  }
}

TEST(Recall, RefusesAHaystackWithoutSentences) {
  const TemporaryFolder folder;
  folder.write("hay.txt", "no sentence here\n");
  RecallSpec spec = spec_of("facts");
  spec.haystack = {parse_text_source("hay.txt", "haystack")};
  EXPECT_THAT(message_of([&] { task_of(spec, "nemotron", folder.path()); }), HasSubstr("hay.txt: no line is a whole"));
}

}  // namespace
}  // namespace replayeval::datasets
