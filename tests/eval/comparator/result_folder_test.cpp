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

std::string refusal(const std::filesystem::path& path, const json& identity, bool overwrite = false) {
  try {
    ResultFolder::open(path, identity, overwrite);
  } catch (const ResultFolderError& error) {
    return error.what();
  }
  return "";
}

TEST(ResultFolder, SameIdentityResumesAndKeepsWhatIsThere) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "new" / "folder";
  { ResultFolder::open(path, {{"a", 1}}, false); }
  std::ofstream(path / "tokens" / "kept.npy") << "x";
  { ResultFolder::open(path, {{"a", 1}}, false); }
  EXPECT_TRUE(std::filesystem::exists(path / "tokens" / "kept.npy"));
}

TEST(ResultFolder, AnotherIdentityIsRefusedWithTheDifferenceNamed) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  { ResultFolder::open(path, {{"config", {{"context", 1024}}}}, false); }
  EXPECT_EQ(refusal(path, {{"config", {{"context", 512}}}}), "");  // no work is there yet
  EXPECT_EQ(refusal(path, {{"config", {{"context", 1024}}}}), "");
  std::ofstream(path / "results.json") << "{}";
  const std::string message = refusal(path, {{"config", {{"context", 2048}}}});
  EXPECT_THAT(message, HasSubstr("/config/context is 1024 there and 2048 here"));
  EXPECT_THAT(message, HasSubstr("--overwrite"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(ResultFolder, OverwriteRemovesOnlyWhatARunWrote) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  { ResultFolder::open(path, {{"a", 1}}, false); }
  std::ofstream(path / "results.json") << "{}";
  std::ofstream(path / "tokens" / "old.npy") << "x";
  { ResultFolder::open(path, {{"a", 2}}, true); }
  EXPECT_FALSE(std::filesystem::exists(path / "results.json"));
  EXPECT_FALSE(std::filesystem::exists(path / "tokens" / "old.npy"));
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
  std::optional<ResultFolder> first(ResultFolder::open(temporary.path() / "run", {{"a", 1}}, false));
  EXPECT_THAT(refusal(temporary.path() / "run", {{"a", 1}}), HasSubstr("another run is working"));
  first.reset();
  EXPECT_EQ(refusal(temporary.path() / "run", {{"a", 1}}), "");
}

TEST(ResultFolder, ADamagedIdentityIsNamed) {
  const TemporaryFolder temporary;
  const auto path = temporary.path() / "run";
  { ResultFolder::open(path, {{"a", 1}}, false); }
  std::ofstream(path / "identity.json") << "{\"a\":";
  EXPECT_THAT(refusal(path, {{"a", 1}}), HasSubstr("identity.json: not valid JSON"));
  EXPECT_EQ(refusal(path, {{"a", 1}}, true), "");
  std::filesystem::remove(path / "identity.json");
  std::filesystem::create_directory(path / "identity.json");
  EXPECT_THAT(refusal(path, {{"a", 1}}), HasSubstr("identity.json: is a folder, expected a JSON file"));
  EXPECT_EQ(refusal(path, {{"a", 1}}, true), "");
}

}  // namespace
}  // namespace replayeval
