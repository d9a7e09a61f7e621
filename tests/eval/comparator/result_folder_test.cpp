#include "eval/comparator/result_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

ResultFolder opened(const std::filesystem::path& path, const json& identity, bool overwrite = false,
                    const std::string& revision = "abc") {
  return ResultFolder::open(path, identity, revision, overwrite);
}

// A shard as far as the folder knows one.
void leave_shard(const ResultFolder& folder) {
  std::filesystem::create_directories(folder.shard_folder("text"));
  std::ofstream(folder.shard_folder("text") / "000000.npy") << "x";
  std::ofstream(folder.shard_folder("text") / "000000.json") << "{}";
}

std::string refusal(const std::filesystem::path& path, const json& identity, bool overwrite = false,
                    const std::string& revision = "abc") {
  try {
    ResultFolder::open(path, identity, revision, overwrite);
  } catch (const ResultFolderError& error) {
    return error.what();
  }
  return "";
}

TEST(ResultFolder, SameIdentityResumesAndKeepsWhatIsThere) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "new" / "folder";
  {
    const ResultFolder folder = opened(path, {{"a", 1}});
    leave_shard(folder);
    std::ofstream(path / "tokens" / "kept.npy") << "x";
  }
  { opened(path, {{"a", 1}}); }
  EXPECT_TRUE(std::filesystem::exists(path / "tokens" / "kept.npy"));
}

TEST(ResultFolder, ARunWithoutWorkLeavesNothing) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  { opened(path, {{"a", 1}}); }
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    const ResultFolder folder = opened(path, {{"a", 1}});
    leave_shard(folder);
    std::filesystem::remove(folder.shard_folder("text") / "000000.json");  // stopped while it wrote
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::create_directory(path);
  { opened(path, {{"a", 1}}); }
  EXPECT_TRUE(std::filesystem::is_empty(path)) << "a folder that was there stays";
}

TEST(ResultFolder, WhatARefusedRunFindsStays) {
  const TemporaryFolder temporary;
  std::filesystem::create_directory(temporary.path() / "tokens");
  std::ofstream(temporary.path() / "tokens" / "mine.txt") << "mine";
  std::ofstream(temporary.path() / ".lock") << "";
  EXPECT_THAT(refusal(temporary.path(), {{"a", 1}}), HasSubstr("holds files that no run wrote"));
  EXPECT_TRUE(std::filesystem::exists(temporary.path() / "tokens" / "mine.txt"));
}

TEST(ResultFolder, UnfinishedWorkOfAnotherRevisionIsRefused) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  leave_shard(opened(path, {{"a", 1}}, false, "abc"));
  EXPECT_EQ(refusal(path, {{"a", 1}}, false, "abc"), "");
  const std::string message = refusal(path, {{"a", 1}}, false, "def");
  EXPECT_THAT(message, HasSubstr("holds unfinished work of abc, and this program is def"));
  EXPECT_THAT(message, HasSubstr("--overwrite"));
  EXPECT_EQ(refusal(path, {{"a", 1}}, false, "abc"), "") << "the refused one has not made it its own";
  EXPECT_EQ(refusal(path, {{"a", 1}}, true, "def"), "");
}

TEST(ResultFolder, CompleteResultsOfAnotherRevisionAreOpened) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  {
    ResultFolder folder = opened(path, {{"a", 1}}, false, "abc");
    leave_shard(folder);
    std::ofstream(folder.results_file()) << "{}";
    folder.remove_progress();
  }
  EXPECT_EQ(refusal(path, {{"a", 1}}, false, "def"), "");
  EXPECT_TRUE(std::filesystem::exists(path / "results.json"));
}

TEST(ResultFolder, AnotherIdentityIsRefusedWithTheDifferenceNamed) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  EXPECT_EQ(refusal(path, {{"config", {{"context", 512}}}}), "");
  leave_shard(opened(path, {{"config", {{"context", 1024}}}}));
  const std::string message = refusal(path, {{"config", {{"context", 2048}}}});
  EXPECT_THAT(message, HasSubstr("/config/context is 1024 there and 2048 here"));
  EXPECT_THAT(message, HasSubstr("--overwrite"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(ResultFolder, OverwriteRemovesOnlyWhatARunWrote) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  {
    const ResultFolder folder = opened(path, {{"a", 1}});
    std::ofstream(folder.results_file()) << "{}";
    std::ofstream(path / "tokens" / "old.npy") << "x";
    std::ofstream(path / "thesis.tex") << "mine";
  }
  leave_shard(opened(path, {{"a", 2}}, true));
  EXPECT_FALSE(std::filesystem::exists(path / "results.json"));
  EXPECT_FALSE(std::filesystem::exists(path / "tokens" / "old.npy"));
  EXPECT_TRUE(std::filesystem::exists(path / "thesis.tex"));
  EXPECT_EQ(refusal(path, {{"a", 2}}), "");  // the folder is the new run's now
}

TEST(ResultFolder, AFolderWithForeignFilesIsRefused) {
  const TemporaryFolder temporary;
  std::ofstream(temporary.path() / "thesis.tex") << "mine";
  EXPECT_THAT(refusal(temporary.path(), {{"a", 1}}), HasSubstr("holds files that no run wrote"));
  EXPECT_THAT(refusal(temporary.path(), {{"a", 1}}, true), HasSubstr("holds files that no run wrote"));
  EXPECT_TRUE(std::filesystem::exists(temporary.path() / "thesis.tex"));
  EXPECT_FALSE(std::filesystem::exists(temporary.path() / ".lock")) << "the folder is left as it was";
}

TEST(ResultFolder, AFileInItsPlaceIsRefused) {
  const TemporaryFolder temporary;
  std::ofstream(temporary.path() / "results") << "x";
  EXPECT_THAT(refusal(temporary.path() / "results", {}), HasSubstr("is a file"));
  EXPECT_THAT(refusal(temporary.path() / "results" / "demo", {}), HasSubstr("cannot be created"));
}

TEST(ResultFolder, TwoRunsDoNotShareAFolder) {
  const TemporaryFolder temporary;
  std::optional<ResultFolder> first(opened(temporary.path() / "run", {{"a", 1}}));
  EXPECT_THAT(refusal(temporary.path() / "run", {{"a", 1}}), HasSubstr("another run is working"));
  first.reset();
  EXPECT_EQ(refusal(temporary.path() / "run", {{"a", 1}}), "");
}

TEST(ResultFolder, ADamagedIdentityIsNamed) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  leave_shard(opened(path, {{"a", 1}}));
  std::ofstream(path / "identity.json") << "{\"a\":";
  EXPECT_THAT(refusal(path, {{"a", 1}}), HasSubstr("identity.json: not valid JSON"));
  EXPECT_EQ(refusal(path, {{"a", 1}}, true), "");
  std::filesystem::remove(path / "identity.json");
  std::filesystem::create_directories(path / "identity.json");
  EXPECT_THAT(refusal(path, {{"a", 1}}), HasSubstr("identity.json: is a folder, expected a JSON file"));
  EXPECT_EQ(refusal(path, {{"a", 1}}, true), "");
}

}  // namespace
}  // namespace replayeval
