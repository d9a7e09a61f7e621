// Token ids against those that the harness's `hf` model made (see make_samples.py).
#include "datasets/tasks/task_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "datasets/tasks/python_text.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;
using SharedTokenizer = std::shared_ptr<const datasets::Tokenizer>;

SharedTokenizer bundled(const std::string& name, bool add_bos) {
  static std::map<std::pair<std::string, bool>, SharedTokenizer> loaded;
  SharedTokenizer& tokenizer = loaded[{name, add_bos}];
  const std::filesystem::path folder = name == "bpe" ? "tests/datasets/tasks/data/bpe" : "checkpoints/" + name;
  if (!tokenizer && !add_bos) tokenizer = datasets::load_tokenizer(folder);
  if (!tokenizer) {
    const ScratchFolder with_bos;
    for (const char* file : {"tokenizer.json", "tokenizer.model"})
      if (std::filesystem::exists(folder / file)) std::filesystem::copy(folder / file, with_bos.path());
    std::ifstream file(folder / "tokenizer_config.json");
    nlohmann::json config = nlohmann::json::parse(file);
    config["add_bos_token"] = true;
    with_bos.write("tokenizer_config.json", config.dump());
    tokenizer = datasets::load_tokenizer(with_bos.path());
  }
  return tokenizer;
}

TaskDocument document_of(RequestType type, const std::string& context, const std::string& continuation) {
  TaskDocument document;
  document.type = type;
  document.requests = {{context, continuation}};
  return document;
}

EncoderOptions options_of(const nlohmann::json& expected) {
  EncoderOptions options;
  options.max_length = expected.at("max_length").get<std::int64_t>();
  if (!expected.at("add_bos").is_null()) options.add_bos = expected.at("add_bos").get<bool>();
  return options;
}

class HarnessRequests : public ::testing::Test {
 protected:
  // Calls check(case, encoder) for every combination of tokenizer, bos and length.
  template <typename Check>
  void for_each_case(Check check) {
    std::ifstream file("tests/datasets/tasks/data/requests.json");
    const nlohmann::json cases = nlohmann::json::parse(file);
    ASSERT_EQ(cases.size(), 24U);
    for (const nlohmann::json& expected : cases) {
      SCOPED_TRACE(expected.at("checkpoint").get<std::string>() + " bos in files " +
                   expected.at("files_add_bos").dump() + " add_bos " + expected.at("add_bos").dump() + " length " +
                   expected.at("max_length").dump());
      TaskEncoder encoder(bundled(expected.at("checkpoint"), expected.at("files_add_bos")), options_of(expected));
      check(expected, encoder);
    }
  }
};

TEST_F(HarnessRequests, Pairs) {
  for_each_case([](const nlohmann::json& expected, TaskEncoder& encoder) {
    const auto max_length = encoder.options().max_length;
    for (const nlohmann::json& pair : expected.at("pairs")) {
      const TaskDocument document = document_of(RequestType::loglikelihood, pair[0], pair[1]);
      const Ids context = pair[2], continuation = pair[3];
      SCOPED_TRACE(pair[0].dump() + " + " + pair[1].dump());
      if (continuation.empty()) {  // where the harness aborts, too
        EXPECT_THROW(encoder.encode(document, "here"), datasets::DataError);
        continue;
      }
      const EncodedDocument encoded = encoder.encode(document, "here");
      ASSERT_EQ(encoded.scoring.size(), 1U);
      EXPECT_EQ(encoded.scoring[0].continuation, continuation);
      EXPECT_EQ(encoded.scoring[0].context, context);
      EXPECT_LE(encoded.scoring[0].context.size() + continuation.size(), static_cast<std::size_t>(max_length) + 1);
    }
  });
}

TEST_F(HarnessRequests, RollingWindows) {
  for_each_case([](const nlohmann::json& expected, TaskEncoder& encoder) {
    for (const nlohmann::json& text : expected.at("rolling")) {
      SCOPED_TRACE(text[0].dump());
      const TaskDocument document = document_of(RequestType::loglikelihood_rolling, "", text[0]);
      const EncodedDocument encoded = encoder.encode(document, "here");
      ASSERT_EQ(encoded.scoring.size(), text[1].size());
      for (std::size_t i = 0; i < text[1].size(); ++i) {
        EXPECT_EQ(encoded.scoring[i].context, text[1][i][0].get<Ids>());
        EXPECT_EQ(encoded.scoring[i].continuation, text[1][i][1].get<Ids>());
      }
    }
  });
}

TEST_F(HarnessRequests, Prompts) {
  for_each_case([](const nlohmann::json& expected, TaskEncoder& encoder) {
    for (const nlohmann::json& prompt : expected.at("generation")) {
      SCOPED_TRACE(prompt[0].dump());
      TaskDocument document = document_of(RequestType::generate_until, prompt[0], "");
      document.generation.until = {"\n\n", "Q:"};
      document.generation.max_tokens = 6;
      const auto request = encoder.encode(document, "here").generation;
      ASSERT_TRUE(request);
      EXPECT_EQ(request->prompt, prompt[1].get<Ids>());
      EXPECT_EQ(request->max_tokens, prompt[2].get<std::int64_t>());
      EXPECT_EQ(request->until, prompt[3].get<std::vector<std::string>>());
    }
  });
}

TEST(TaskEncoder, CountsWhatItCut) {
  EncoderOptions options;
  options.max_length = 4;
  TaskEncoder encoder(bundled("tiny-qwen3-next", false), options);
  const std::string long_text = "one two three four five six seven eight nine ten";
  encoder.encode(document_of(RequestType::loglikelihood, long_text, " x"), "a");
  encoder.encode(document_of(RequestType::loglikelihood, "x", " " + long_text), "b");
  EXPECT_EQ(encoder.counts().cut_contexts, 2);
  EXPECT_EQ(encoder.counts().cut_continuations, 1);
  EXPECT_EQ(encoder.counts().requests, 2);
  const std::vector<std::string> warnings = encoder.warnings();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("1 of 2 requests have a continuation of more than 4 tokens"));
}

TEST(TaskEncoder, ScoresTheEndOfAContinuationThatIsTooLong) {
  EncoderOptions options;
  options.max_length = 3;
  const SharedTokenizer tokenizer = bundled("tiny-qwen3-next", false);
  TaskEncoder encoder(tokenizer, options);
  const std::string text = "one two three four five six seven eight nine ten";
  const Ids ids = tokenizer->encode(text);
  const auto scoring = encoder.encode(document_of(RequestType::loglikelihood, "", text), "a").scoring;
  EXPECT_EQ(scoring[0].continuation, Ids(ids.end() - 3, ids.end()));
  EXPECT_EQ(scoring[0].context, Ids(ids.end() - 4, ids.end() - 3));
}

TEST(TaskEncoder, NoticesATokenThatSpansTheJoin) {
  const SharedTokenizer tokenizer = bundled("tiny-qwen3-next", false);
  TaskEncoder encoder(tokenizer, {});
  ASSERT_EQ(tokenizer->encode("the").size(), 1U);
  ASSERT_NE(tokenizer->encode("th")[0], tokenizer->encode("the")[0]);
  encoder.encode(document_of(RequestType::loglikelihood, "th", "e end"), "a");
  EXPECT_EQ(encoder.counts().joined_tokens, 1);
  encoder.encode(document_of(RequestType::loglikelihood, "the", " end"), "a");
  EXPECT_EQ(encoder.counts().joined_tokens, 1);
}

TEST(TaskEncoder, WhiteSpaceAloneIsConditionedOnThePrefix) {
  const SharedTokenizer tokenizer = bundled("tiny-qwen3-next", false);
  EncoderOptions options;
  options.add_bos = false;
  TaskEncoder encoder(tokenizer, options);
  const auto scoring = encoder.encode(document_of(RequestType::loglikelihood, " \n", "word"), "a").scoring;
  EXPECT_EQ(scoring[0].context, Ids{*tokenizer->bos_id()});
  EXPECT_EQ(scoring[0].continuation, tokenizer->encode(" \nword"));
  EXPECT_EQ(encoder.counts().bare_contexts, 1);
}

TEST(TaskEncoder, SaysWhatCannotBeScored) {
  TaskEncoder encoder(bundled("tiny-nemotron-h", false), {});
  const auto message = [&](const TaskDocument& document) {
    return message_of<datasets::DataError>([&] { encoder.encode(document, "f.jsonl: line 3"); });
  };
  EXPECT_THAT(message(document_of(RequestType::loglikelihood, "context", "")),
              ::testing::StartsWith(
                  "f.jsonl: line 3: request 0: no token is left for the continuation ''; expected one or more"));
  EXPECT_THAT(message(document_of(RequestType::loglikelihood, "context", "\xff")),
              ::testing::StartsWith("f.jsonl: line 3: text to encode: byte 7"));
  TaskDocument generation = document_of(RequestType::generate_until, "prompt", "");
  generation.generation.max_tokens = 2048;
  EXPECT_EQ(message(generation),
            "f.jsonl: line 3: max_gen_toks: found 2048, expected less than the checkpoint's max_length 2048");
  EXPECT_EQ(encoder.counts().documents, 0);
}

TEST(TaskEncoder, CutsTextAtStopsInTheirOrder) {
  const std::vector<std::string> until = {"END", "", "\n"};
  EXPECT_EQ(cut_at_stops("one\ntwo END three", until), "one");
  EXPECT_EQ(cut_at_stops("no stop", until), "no stop");
  // A stop that only an earlier one's cut leaves incomplete does not count.
  const std::vector<std::string> overlapping = {"b", "abc"};
  EXPECT_EQ(cut_at_stops("xabcd", overlapping), "xa");
  EXPECT_TRUE(holds_stop("xabcd", overlapping));
  EXPECT_FALSE(holds_stop("xacd", overlapping));
}

TEST(TaskEncoder, TextLeavesSpecialTokensOut) {
  const SharedTokenizer tokenizer = bundled("tiny-nemotron-h", false);
  TaskEncoder encoder(tokenizer, {});
  GenerationRequest request;
  request.until = {"stop"};
  Ids ids = tokenizer->encode("go on stop here");
  ids.push_back(*tokenizer->eos_id());
  EXPECT_EQ(encoder.text_of(ids, request), "go on ");
  request.until = {"</s>"};
  EXPECT_EQ(encoder.text_of(ids, request), "go on stop here");
}

TEST(TaskEncoder, CountsPromptsWithoutTheChatTemplate) {
  const ScratchFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "{{ '<|user|>' + m }}"})");
  EncoderOptions options;
  options.chat_template = ChatTemplate::read(folder.path());
  TaskEncoder encoder(bundled("tiny-nemotron-h", false), options);
  encoder.encode(document_of(RequestType::loglikelihood, "plain", " text"), "a");
  encoder.encode(document_of(RequestType::loglikelihood, "<|user|>plain", " text"), "a");
  encoder.encode(document_of(RequestType::loglikelihood_rolling, "", "a whole text"), "a");
  EXPECT_EQ(encoder.counts().without_chat_template, 1);
  EXPECT_THAT(encoder.warnings(), ElementsAre(HasSubstr("1 of 3 documents lack the control tokens")));
}

}  // namespace
}  // namespace replayeval::tasks
