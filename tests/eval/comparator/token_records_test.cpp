#include "eval/comparator/token_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

using ::testing::HasSubstr;

metrics::TokenDivergence arm_of(const std::vector<double>& log_prob) {
  metrics::TokenDivergence arm;
  for (const double value : log_prob) {
    arm.log_prob.push_back(value);
    arm.kl.push_back(static_cast<float>(-value * 1e-12));
    arm.delta_p.push_back(static_cast<float>(value / 7));
    arm.rank.push_back(static_cast<std::int32_t>(-value * 10));
    arm.same_top1.push_back(value < -2 ? 1 : 0);
    arm.tie.push_back(value < -3 ? 1 : 0);
  }
  return arm;
}

Shard example() {
  Shard shard;
  shard.tokens = {
      {1, 0, 0}, {1, 2, 1}, {1, 2, 1}, {40, 41, 42}, {arm_of({-1.25, -2.5, -3.0 / 7}), arm_of({-4, -0.1, -2})}, {}, {}};
  shard.decoded_tokens = 5;
  shard.seconds = 0.75;
  shard.kernel_seconds = {{"", "dense", 3, 0.5}, {"replay", "mamba2", 6, 0.125}};
  shard.storage_counts = {{{1, 2, 3}, {4, 5, 6}}, {{0, 0, 0}, {7, 8, 9}}};
  return shard;
}

TEST(Shard, ComesBackFromDiskBitForBit) {
  const TemporaryFolder folder;
  const Shard shard = example();
  EXPECT_FALSE(has_shard(folder.path(), 7));
  save_shard(folder.path(), 7, shard);
  ASSERT_TRUE(has_shard(folder.path(), 7));
  const Shard read = load_shard(folder.path(), 7, 2);
  EXPECT_EQ(read.tokens.document, shard.tokens.document);
  EXPECT_EQ(read.tokens.position, shard.tokens.position);
  EXPECT_EQ(read.tokens.window_position, shard.tokens.window_position);
  EXPECT_EQ(read.tokens.target, shard.tokens.target);
  for (std::size_t arm = 0; arm < 2; ++arm) {
    EXPECT_EQ(read.tokens.arms[arm].log_prob, shard.tokens.arms[arm].log_prob);
    EXPECT_EQ(read.tokens.arms[arm].kl, shard.tokens.arms[arm].kl);
    EXPECT_EQ(read.tokens.arms[arm].delta_p, shard.tokens.arms[arm].delta_p);
    EXPECT_EQ(read.tokens.arms[arm].rank, shard.tokens.arms[arm].rank);
    EXPECT_EQ(read.tokens.arms[arm].same_top1, shard.tokens.arms[arm].same_top1);
    EXPECT_EQ(read.tokens.arms[arm].tie, shard.tokens.arms[arm].tie);
  }
  EXPECT_EQ(read.decoded_tokens, 5);
  EXPECT_EQ(read.seconds, 0.75);
  ASSERT_EQ(read.kernel_seconds.size(), 2U);
  EXPECT_EQ(read.kernel_seconds[1].kernel, "mamba2");
  EXPECT_EQ(read.kernel_seconds[1].calls, 6);
  EXPECT_EQ(read.storage_counts[1][1].non_finite, 9U);
}

TEST(Shard, ComparisonsWithAStoredBaselineComeBack) {
  const TemporaryFolder folder;
  Shard shard = example();
  shard.tokens.stored = {arm_of({-7, -8, -9})};
  shard.tokens.against = {arm_of({-0.5, -0.25, -0.125})};
  save_shard(folder.path(), 0, shard);
  const Shard read = load_shard(folder.path(), 0, 2, 1);
  EXPECT_EQ(read.tokens.stored[0].log_prob, shard.tokens.stored[0].log_prob);
  EXPECT_EQ(read.tokens.against[0].log_prob, shard.tokens.against[0].log_prob);
  EXPECT_THROW(load_shard(folder.path(), 0, 2), DamagedShard);  // of a run that compared with none
  TokenRecords all;
  all.append(TokenRecords(read.tokens));
  EXPECT_EQ(all.sort_by_text(), (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(all.against[0].log_prob, (std::vector<double>{-0.125, -0.25, -0.5}));
}

TEST(Shard, WithoutItsLastFileItDoesNotExist) {
  const TemporaryFolder folder;
  save_shard(folder.path(), 0, example());
  std::filesystem::remove(folder.path() / "000000.json");
  EXPECT_FALSE(has_shard(folder.path(), 0));
}

std::string failure(const TemporaryFolder& folder, std::size_t arms) {
  try {
    load_shard(folder.path(), 0, arms);
  } catch (const DamagedShard& error) {
    return error.what();
  }
  return "";
}

TEST(Shard, DamageIsNamed) {
  const TemporaryFolder folder;
  const auto json = folder.path() / "000000.json", npy = folder.path() / "000000.npy";
  save_shard(folder.path(), 0, example());
  std::filesystem::resize_file(npy, std::filesystem::file_size(npy) - 8);
  EXPECT_THAT(failure(folder, 2), HasSubstr("000000.npy: damaged"));
  std::filesystem::remove(npy);
  EXPECT_THAT(failure(folder, 2), HasSubstr("000000.npy: is missing"));
  save_shard(folder.path(), 0, example());
  std::ofstream(json) << "{";
  EXPECT_THAT(failure(folder, 2), HasSubstr("000000.json: damaged"));
  std::ofstream(json) << "{}";  // nor does a file without hashes count
  EXPECT_THAT(failure(folder, 2), HasSubstr("000000.json: damaged"));
  std::filesystem::remove(json);
  std::filesystem::create_directory(json);
  EXPECT_THAT(failure(folder, 2), HasSubstr("000000.json: is missing, or no file"));
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Shard, EveryFlippedByteIsNoticed) {
  const TemporaryFolder folder;
  save_shard(folder.path(), 0, example());
  for (const char* name : {"000000.json", "000000.npy"}) {
    const std::string whole = bytes_of(folder.path() / name);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] ^= 0x01;
      folder.write(name, flipped);
      EXPECT_THAT(failure(folder, 2), HasSubstr("000000.")) << name << ", byte " << at;
    }
    folder.write(name, whole);
  }
  EXPECT_EQ(failure(folder, 2), "");
}

TEST(Shard, CountsOfOtherArmsOrMixersAreDamage) {
  const TemporaryFolder folder;
  Shard shard = example();
  shard.storage_counts[1].pop_back();
  save_shard(folder.path(), 0, shard);
  EXPECT_THAT(failure(folder, 2), HasSubstr("000000.json: expected counts of 2 arms"));
  shard.storage_counts.pop_back();
  save_shard(folder.path(), 0, shard);
  EXPECT_THAT(failure(folder, 2), HasSubstr("000000.json: expected counts of 2 arms"));
  shard = example();
  shard.storage_counts.push_back(shard.storage_counts.front());
  save_shard(folder.path(), 0, shard);
  EXPECT_THAT(failure(folder, 3), HasSubstr("000000.npy: expected 22 rows for 3 arms"));
}

TEST(TokenRecords, SortByTextMovesAllArraysTogether) {
  TokenRecords records = example().tokens;
  records.sort_by_text();
  EXPECT_EQ(records.document, (std::vector<std::int64_t>{0, 0, 1}));
  EXPECT_EQ(records.position, (std::vector<std::int64_t>{1, 2, 1}));
  EXPECT_EQ(records.target, (std::vector<std::int64_t>{42, 41, 40}));
  EXPECT_EQ(records.arms[0].log_prob, (std::vector<double>{-3.0 / 7, -2.5, -1.25}));
  EXPECT_EQ(records.arms[1].tie, (std::vector<std::uint8_t>{0, 0, 1}));
}

TEST(TokenRecords, AppendKeepsOrder) {
  TokenRecords records;
  records.append(example().tokens);
  records.append(example().tokens);
  EXPECT_EQ(records.size(), 6U);
  EXPECT_EQ(records.target, (std::vector<std::int64_t>{40, 41, 42, 40, 41, 42}));
  EXPECT_EQ(records.arms[1].log_prob, (std::vector<double>{-4, -0.1, -2, -4, -0.1, -2}));
}

}  // namespace
}  // namespace replayeval
