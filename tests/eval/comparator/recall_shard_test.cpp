#include "eval/comparator/recall/recall_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

using ::testing::HasSubstr;

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
