#include "eval/comparator/generation/end_tokens.h"

#include <gtest/gtest.h>

#include <fstream>

#include "eval/checkpoint/checkpoint.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

using Ids = std::set<std::int32_t>;

class EndTokens : public ::testing::Test {
 protected:
  void write(const char* name, const char* text) const { std::ofstream(folder_.path() / name) << text; }
  Ids ids() const { return end_tokens_of(folder_.path(), nullptr, 100); }

  TemporaryFolder folder_;
};

TEST_F(EndTokens, GenerationConfigGoesBeforeConfig) {
  write("config.json", R"({"eos_token_id": 2})");
  EXPECT_EQ(ids(), Ids{2});
  write("generation_config.json", R"({"eos_token_id": [7, 9]})");
  EXPECT_EQ(ids(), (Ids{7, 9}));
  write("generation_config.json", R"({"eos_token_id": null, "temperature": 1})");
  EXPECT_EQ(ids(), Ids{2});
}

TEST_F(EndTokens, TheTextConfigIsAskedLast) {
  write("config.json", R"({"text_config": {"eos_token_id": 5}})");
  EXPECT_EQ(ids(), Ids{5});
  write("config.json", R"({"eos_token_id": 3, "text_config": {"eos_token_id": 5}})");
  EXPECT_EQ(ids(), Ids{3});
  write("config.json", "{}");
  EXPECT_EQ(ids(), Ids{});
}

TEST_F(EndTokens, RefusesWhatIsNoToken) {
  write("config.json", "{}");
  for (const char* eos : {"100", "-1", "2.5", "\"</s>\"", "[3, true]"}) {
    write("generation_config.json", (R"({"eos_token_id": )" + std::string(eos) + "}").c_str());
    testing::expect_error<CheckpointError>(
        [&] { ids(); }, {"generation_config.json: eos_token_id: found", "expected ids from 0 to 99"});
  }
  write("generation_config.json", "[]");
  testing::expect_error<CheckpointError>([&] { ids(); }, {"generation_config.json", "expected an object"});
}

}  // namespace
}  // namespace replayeval
