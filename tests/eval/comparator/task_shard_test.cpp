#include "eval/comparator/tasks/task_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

using ::testing::HasSubstr;

TaskShard sample() {
  TaskShard shard;
  shard.scores = {{{-1.0 / 3.0, true}, {-1e-300, false}}, {{-12345.678901234567, false}, {-0.1, true}}};
  shard.costs.decoded_tokens = 7;
  shard.costs.seconds = 0.25;
  shard.costs.kernel_seconds = {{"a", "mamba2", 3, 0.125}};
  shard.costs.storage_counts = {{{1, 2, 3}}, {{4, 5, 6}}};
  return shard;
}

std::string damage_of(const std::filesystem::path& folder, std::size_t requests, std::size_t arms) {
  try {
    load_task_shard(folder, 3, requests, arms);
  } catch (const DamagedShard& damage) {
    return damage.what();
  }
  return "nothing was thrown";
}

TEST(TaskShard, ComesBackToTheBit) {
  const TemporaryFolder folder;
  EXPECT_FALSE(has_task_shard(folder.path(), 3));
  save_task_shard(folder.path(), 3, sample());
  ASSERT_TRUE(has_task_shard(folder.path(), 3));
  const TaskShard stored = load_task_shard(folder.path(), 3, 2, 2), made = sample();
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t arm = 0; arm < 2; ++arm) {
      EXPECT_EQ(stored.scores[r][arm].log_likelihood, made.scores[r][arm].log_likelihood);
      EXPECT_EQ(stored.scores[r][arm].is_greedy, made.scores[r][arm].is_greedy);
    }
  EXPECT_EQ(stored.costs.decoded_tokens, 7);
  EXPECT_EQ(stored.costs.kernel_seconds.at(0).kernel, "mamba2");
  EXPECT_EQ(stored.costs.storage_counts.at(1).at(0).subnormal, 5U);
}

TEST(TaskShard, NamesTheFileThatIsDamaged) {
  const TemporaryFolder folder;
  save_task_shard(folder.path(), 3, sample());
  EXPECT_THAT(damage_of(folder.path(), 3, 2), HasSubstr("000003.json: expected 3 requests of 2 arms"));
  EXPECT_THAT(damage_of(folder.path(), 2, 1), HasSubstr("expected 2 requests of 1 arms"));
  const std::filesystem::path file = folder.path() / "000003.json";
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::string changed = text.str();
  changed.replace(changed.find("-0.1"), 4, "-0.2");
  std::ofstream(file) << changed;
  EXPECT_THAT(damage_of(folder.path(), 2, 2), HasSubstr("SHA-256"));
  std::ofstream(file) << "{";
  EXPECT_THAT(damage_of(folder.path(), 2, 2), HasSubstr("000003.json: damaged (not the JSON"));
}

}  // namespace
}  // namespace replayeval
