#include "datasets/random_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "datasets/windows.h"

namespace replayeval::datasets {
namespace {

const RandomIdsSpec three = {.name = "ids", .documents = 3, .tokens = 500, .seed = 9};

TEST(RandomIds, SeedAndNumberDecide) {
  const RandomIds ids(three, 100);
  EXPECT_EQ(ids.document(1), RandomIds(three, 100).document(1));
  EXPECT_NE(ids.document(1), ids.document(2));
  RandomIdsSpec other = three;
  other.seed = 10;
  EXPECT_NE(ids.document(1), RandomIds(other, 100).document(1));
  EXPECT_EQ(ids.sha256(), RandomIds(three, 100).sha256());
  EXPECT_NE(ids.sha256(), RandomIds(other, 100).sha256());
}

// mt19937_64 and seed_seq are the same everywhere, and so must be what is made of them.
TEST(RandomIds, AreTheSameOnEveryPlatform) {
  const std::vector<std::int32_t> ids =
      RandomIds({.name = "x", .documents = 1, .tokens = 4, .seed = 1}, 1000).document(0);
  std::seed_seq seeds{1, 0, 0};
  std::mt19937_64 random(seeds);
  for (const std::int32_t id : ids) EXPECT_EQ(id, static_cast<std::int32_t>(random() % 1000));
}

TEST(RandomIds, FillTheVocabularyAndNoMore) {
  const std::vector<std::int32_t> ids = RandomIds(three, 20).document(0);
  EXPECT_EQ(ids.size(), 500U);
  EXPECT_EQ(std::set<std::int32_t>(ids.begin(), ids.end()).size(), 20U);
  EXPECT_GE(*std::min_element(ids.begin(), ids.end()), 0);
  EXPECT_LT(*std::max_element(ids.begin(), ids.end()), 20);
  EXPECT_THROW(RandomIds(three, 0), DataError);
}

TEST(RandomIds, MakeWindowsWithoutATokenizer) {
  std::vector<TokenSource> sources;
  sources.emplace_back(RandomIds(three, 50));
  WindowReader reader(std::move(sources), nullptr, {.context = 100, .stride = 0, .bos = {}, .max_tokens = 0});
  EXPECT_EQ(reader.count().scored, 3 * 499);
  std::vector<std::int32_t> first;
  while (const auto window = reader.next())
    if (window->document == 0) first.insert(first.end(), window->tokens.begin(), window->tokens.end() - 1);
  const std::vector<std::int32_t> whole = RandomIds(three, 50).document(0);
  EXPECT_EQ(first, std::vector<std::int32_t>(whole.begin(), whole.end() - 1));
  EXPECT_EQ(reader.documents().size(), 3U);
  const nlohmann::json description = reader.describe();
  EXPECT_FALSE(description.contains("tokenizer"));
  EXPECT_EQ(description["sources"][0]["random_ids"]["tokens"], 500);
  reader.rewind();
  EXPECT_EQ(reader.next()->tokens.front(), whole.front());
}

}  // namespace
}  // namespace replayeval::datasets
