#include "eval/comparator/generation/generation_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

using ::testing::HasSubstr;

GenerationShard sample() {
  GenerationShard shard;
  shard.sequences = {{{{1, 2, 3}, {false, true, false}, Ending::limit}, {{1}, {false, true}, Ending::end_token}},
                     {{{}, {false}, Ending::end_token}, {{7, 8}, {true, true}, Ending::stop}}};
  shard.generation = {5, 9, 8, 40, 0.125};
  shard.costs.decoded_tokens = 9;
  shard.costs.kernel_seconds = {{"a", "mamba2", 3, 0.125}};
  shard.costs.storage_counts = {{{1, 2, 3}}, {{4, 5, 6}}};
  return shard;
}

std::string damage_of(const std::filesystem::path& folder, std::size_t items, std::size_t arms) {
  try {
    load_generation_shard(folder, 2, items, arms);
  } catch (const DamagedShard& damage) {
    return damage.what();
  }
  return "nothing was thrown";
}

TEST(GenerationShard, ComesBack) {
  const TemporaryFolder folder;
  save_generation_shard(folder.path(), 2, sample());
  const GenerationShard stored = load_generation_shard(folder.path(), 2, 2, 2), made = sample();
  for (std::size_t item = 0; item < 2; ++item)
    for (std::size_t arm = 0; arm < 2; ++arm) {
      EXPECT_EQ(stored.sequences[item][arm].tokens, made.sequences[item][arm].tokens);
      EXPECT_EQ(stored.sequences[item][arm].ties, made.sequences[item][arm].ties);
      EXPECT_EQ(stored.sequences[item][arm].ending, made.sequences[item][arm].ending);
    }
  EXPECT_EQ(stored.generation.steps, 5);
  EXPECT_EQ(stored.generation.generated_tokens, 8);
  EXPECT_EQ(stored.generation.prompt_tokens, 40);
  EXPECT_EQ(stored.generation.prompt_seconds, 0.125);
  EXPECT_EQ(stored.costs.storage_counts.at(1).at(0).subnormal, 5U);
}

TEST(GenerationShard, NamesTheFileThatIsDamaged) {
  const TemporaryFolder folder;
  save_generation_shard(folder.path(), 2, sample());
  EXPECT_THAT(damage_of(folder.path(), 3, 2), HasSubstr("000002.json: expected 3 items of 2 arms"));
  EXPECT_THAT(damage_of(folder.path(), 2, 1), HasSubstr("expected 2 items of 1 arms"));
  const std::filesystem::path file = folder.path() / "000002.json";
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::string changed = text.str();
  changed.replace(changed.find("[1,2,3]"), 7, "[1,2,4]");
  std::ofstream(file) << changed;
  EXPECT_THAT(damage_of(folder.path(), 2, 2), HasSubstr("SHA-256"));
  std::ofstream(file) << "{}";
  EXPECT_THAT(damage_of(folder.path(), 2, 2), HasSubstr("not the JSON"));
}

}  // namespace
}  // namespace replayeval
