#include "eval/comparator/recall/recall_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <string>

#include "datasets/error.h"
#include "eval/comparator/json_shard.h"
#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RecallShard sample() {
  RecallShard shard;
  shard.right = {{1, 0, 1}, {0, 0, 1}};
  shard.item = {4, 4, 5};
  shard.chance = 1.0 / 3.0;
  shard.costs.decoded_tokens = 7;
  shard.costs.storage_counts = {{{1, 2, 3}}, {{4, 5, 6}}};
  return shard;
}

std::string damage_of(const std::filesystem::path& folder, std::size_t arms) {
  try {
    load_recall_shard(folder, 3, arms);
  } catch (const DamagedShard& damage) {
    return damage.what();
  }
  return "nothing was thrown";
}

TEST(RecallShard, ComesBackToTheBit) {
  const TemporaryFolder folder;
  save_recall_shard(folder.path(), 3, sample());
  const RecallShard stored = load_recall_shard(folder.path(), 3, 2), made = sample();
  EXPECT_EQ(stored.right, made.right);
  EXPECT_EQ(stored.item, made.item);
  EXPECT_EQ(stored.chance, made.chance);
  EXPECT_EQ(stored.costs.decoded_tokens, 7);
  EXPECT_EQ(stored.costs.storage_counts.at(1).at(0).subnormal, 5U);
}

// A part of another workload, or of another place, would bring its own answers.
TEST(RecallShard, IsNoOtherPartsShard) {
  const TemporaryFolder folder;
  for (const char* workload : {"a", "b"}) save_recall_shard(folder.path() / workload, 3, sample());
  save_recall_shard(folder.path() / "a", 2, sample());
  const auto always = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(folder.path() / "a/000002.json", folder.path() / "a/000003.json", always);
  EXPECT_THAT(damage_of(folder.path() / "a", 2), HasSubstr("damaged, or another part"));
  std::filesystem::copy_file(folder.path() / "b/000003.json", folder.path() / "a/000003.json", always);
  EXPECT_THAT(damage_of(folder.path() / "a", 2), HasSubstr("damaged, or another part"));
  EXPECT_EQ(damage_of(folder.path() / "b", 2), "nothing was thrown");
}

TEST(RecallShard, SomethingElseInItsPlaceIsSaidBeforeItIsRead) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "000003.json");
  EXPECT_THAT([&] { has_json_shard(folder.path(), 3); },
              ThrowsMessage<datasets::DataError>(HasSubstr("000003.json: is a folder; expected a part")));
  ASSERT_EQ(mkfifo((folder.path() / "000004.json").c_str(), 0600), 0);
  EXPECT_THAT([&] { has_json_shard(folder.path(), 4); }, ThrowsMessage<datasets::DataError>(HasSubstr("is a pipe")));
  EXPECT_FALSE(has_json_shard(folder.path(), 5));
}

TEST(RecallShard, NamesTheFileThatIsDamaged) {
  const TemporaryFolder folder;
  save_recall_shard(folder.path(), 3, sample());
  EXPECT_THAT(damage_of(folder.path(), 3), HasSubstr("000003.json: expected answers of 3 arms"));
  RecallShard short_of_one = sample();
  short_of_one.right[1].pop_back();
  save_recall_shard(folder.path(), 3, short_of_one);
  EXPECT_THAT(damage_of(folder.path(), 2), HasSubstr("000003.json: expected answers of 2 arms"));
  const std::filesystem::path file = folder.path() / "000003.json";
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::string changed = text.str();
  changed.replace(changed.find("[4,4,5]"), 7, "[4,5,5]");
  std::ofstream(file) << changed;
  EXPECT_THAT(damage_of(folder.path(), 2), HasSubstr("SHA-256"));
}

}  // namespace
}  // namespace replayeval
