#include "datasets/tasks/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datasets/error.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

using ::testing::ElementsAre;

TEST(ChatTemplate, NoneInTheBundledCheckpoints) {
  const ChatTemplate none = ChatTemplate::read("checkpoints/tiny-nemotron-h");
  EXPECT_FALSE(none.is_present());
  EXPECT_FALSE(none.is_missing_in("plain text"));
}

TEST(ChatTemplate, ItsControlTokensAreTheAddedOnes) {
  const ScratchFolder folder;
  folder.write(
      "tokenizer_config.json",
      R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "<s>[U]{{ x }}</s>[A]", "added_tokens_decoder":
                   {"1": {"content": "<s>"}, "2": {"content": "</s>"}, "3": {"content": "[U]"}, "4": {"content": "[A]"},
                    "5": {"content": "[unused]"}}})");
  const ChatTemplate found = ChatTemplate::read(folder.path());
  EXPECT_TRUE(found.is_present());
  EXPECT_THAT(found.control_tokens(), ElementsAre("[A]", "[U]"));
  EXPECT_TRUE(found.is_missing_in("<s>What is it?"));
  EXPECT_FALSE(found.is_missing_in("[U]What is it?"));
}

TEST(ChatTemplate, WordsThatLookLikeControlTokens) {
  const ScratchFolder folder;
  folder.write("chat_template.jinja", "{{ '<|im_start|>user' }} [INST] {{ m }} [/INST] <|im_start|>");
  EXPECT_THAT(ChatTemplate::read(folder.path()).control_tokens(), ElementsAre("<|im_start|>", "[/INST]", "[INST]"));
}

TEST(ChatTemplate, SeveralByName) {
  const ScratchFolder folder;
  folder.write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "<|a|>"}, {"name": "tool", "template": "<|b|>"}]})");
  EXPECT_THAT(ChatTemplate::read(folder.path()).control_tokens(), ElementsAre("<|a|>", "<|b|>"));
}

TEST(ChatTemplate, SaysWhatIsWrong) {
  const ScratchFolder folder;
  const auto file = folder.write("tokenizer_config.json", R"({"chat_template": 7})");
  EXPECT_EQ(message_of<datasets::DataError>([&] { ChatTemplate::read(folder.path()); }),
            file.string() + ": chat_template: found 7, expected a list");
}

}  // namespace
}  // namespace replayeval::tasks
