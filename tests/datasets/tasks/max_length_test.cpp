#include "datasets/tasks/max_length.h"

#include <gtest/gtest.h>

#include "datasets/error.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

std::int64_t length(const std::string& config, const std::string& tokenizer) {
  const ScratchFolder folder;
  folder.write("config.json", config);
  folder.write("tokenizer_config.json", tokenizer);
  return max_length_of(folder.path());
}

TEST(MaxLength, OrderOfTheKeys) {
  EXPECT_EQ(length(R"({"n_ctx": 1, "max_position_embeddings": 2, "n_positions": 3})", "{}"), 3);
  EXPECT_EQ(length(R"({"n_ctx": 1, "max_position_embeddings": 2})", "{}"), 2);
  EXPECT_EQ(length(R"({"n_ctx": 1})", R"({"model_max_length": 9})"), 1);
  EXPECT_EQ(length(R"({"n_ctx": 1, "text_config": {"n_positions": 4}})", "{}"), 4);
  EXPECT_EQ(length("{}", R"({"model_max_length": 9})"), 9);
  EXPECT_EQ(length("{}", "{}"), 2048);
  EXPECT_EQ(max_length_of("checkpoints/tiny-nemotron-h"), 8192);
}

TEST(MaxLength, TokenizersWithoutALimit) {
  EXPECT_EQ(length("{}", R"({"model_max_length": 1000000000000000019884624838656})"), 2048);
}

TEST(MaxLength, SaysWhatIsWrong) {
  EXPECT_NE(message_of<datasets::DataError>([] { length(R"({"n_ctx": "long"})", "{}"); }).find("config.json: n_ctx"),
            std::string::npos);
  EXPECT_NE(message_of<datasets::DataError>([] {
              length("{}", R"({"model_max_length": -1})");
            }).find("tokenizer_config.json: model_max_length: found -1, expected a number of tokens"),
            std::string::npos);
}

}  // namespace
}  // namespace replayeval::tasks
