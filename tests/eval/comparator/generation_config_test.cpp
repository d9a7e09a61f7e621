#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "eval/comparator/run_config.h"

namespace replayeval {
namespace {

using ::testing::HasSubstr;

std::string config(const std::string& workload) {
  return "name: g\ncheckpoint: c\narms:\n  - {name: exact, executor: exact}\nworkloads:\n  - name: w\n    kind: "
         "generation\n" +
         workload;
}

WorkloadConfig parse(const std::string& workload) {
  return parse_run_config(config(workload), "g.yaml").workloads.at(0);
}

std::string refusal_of(const std::string& workload) {
  try {
    parse(workload);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

constexpr const char* prompts = "    prompts: {path: p.jsonl}\n";

TEST(GenerationConfig, FillsInDefaults) {
  const WorkloadConfig workload = parse(prompts);
  EXPECT_EQ(workload.prompt, Prompt::prefill);
  EXPECT_EQ(workload.mode, Mode::stepwise);
  EXPECT_FALSE(workload.batch);
  const GenerationConfig& generation = *workload.generation;
  EXPECT_EQ(generation.prompts.form, PromptForm::jsonl);
  EXPECT_EQ(generation.prompts.field, "prompt");
  EXPECT_EQ(generation.max_tokens, 256);
  EXPECT_EQ(generation.temperature, 0.0);
  EXPECT_EQ(generation.repeats, 1);
  EXPECT_FALSE(generation.ignore_eos);
}

TEST(GenerationConfig, ReadsEveryKey) {
  const WorkloadConfig workload = parse(
      "    prompts: {text: {path: \"t/*.txt\", name: held}, tokens: 32, count: 7, bos: false}\n    max_tokens: 64\n"
      "    temperature: 0.7\n    top_k: 9\n    top_p: 1\n    seed: 3\n    repeats: 4\n    stop: [\"\\n\\n\", END]\n    "
      "end_tokens: [2, 5]\n"
      "    batch: 6\n    block: 32\n    prompt: decode\n");
  EXPECT_EQ(workload.batch, 6);
  EXPECT_EQ(workload.prompt, Prompt::decode);
  const GenerationConfig& generation = *workload.generation;
  EXPECT_EQ(generation.prompts.form, PromptForm::text);
  EXPECT_EQ(generation.prompts.text.name, "held");
  EXPECT_EQ(generation.prompts.tokens, 32);
  EXPECT_EQ(generation.prompts.count, 7);
  EXPECT_FALSE(generation.prompts.bos);
  EXPECT_EQ(generation.prompts.source_path(), "t/*.txt");
  EXPECT_EQ(generation.stop, (std::vector<std::string>{"\n\n", "END"}));
  EXPECT_EQ(generation.end_tokens, (std::vector<std::int32_t>{2, 5}));
  EXPECT_EQ(generation.temperature, 0.7);
  EXPECT_EQ(generation.top_k, 9);
  EXPECT_EQ(generation.top_p, 1.0);
}

TEST(GenerationConfig, OtherFormsOfPrompts) {
  EXPECT_EQ(parse("    prompts: {samples: s.jsonl, count: 2}\n").generation->prompts.form, PromptForm::samples);
  const PromptConfig recall = parse("    prompts: {recall: {kind: facts, lengths: [512]}}\n").generation->prompts;
  EXPECT_EQ(recall.form, PromptForm::recall);
  EXPECT_EQ(recall.recall.kind, "facts");
  EXPECT_EQ(recall.source_path(), "");
}

TEST(GenerationConfig, NamesLineKeyAndExpectation) {
  const auto refused = [](const std::string& more, std::initializer_list<const char*> parts) {
    const std::string message = refusal_of(prompts + more);
    for (const char* part : parts) EXPECT_THAT(message, HasSubstr(part));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  refused("    max_tokens: 0\n", {"g.yaml:9:17: key 'max_tokens'", "whole number from 1", "found '0'"});
  for (const char* temperature : {"-1", "-0.5", "nan", ".nan", "inf", "1e400", "warm"})
    refused(std::string("    temperature: ") + temperature + "\n",
            {"g.yaml:9:18: key 'temperature'", "a number, 0 or more", temperature});
  refused("    repeats: 3\n", {"key 'repeats'", "temperature above 0"});
  for (const char* p : {"0", "1.5", "-1", "nan"})
    refused(std::string("    temperature: 1\n    top_p: ") + p + "\n", {"g.yaml:10:12: key 'top_p'", p});
  for (const char* k : {"0", "-1"})
    refused(std::string("    temperature: 1\n    top_k: ") + k + "\n", {"g.yaml:10:12: key 'top_k'", "from 1", k});
  refused("    temperature: 1\n    top_p: 0\n", {"key 'top_p': expected a number above 0 and at most 1, found '0'"});
  refused("    top_p: 0.5\n", {"key 'top_p'", "a temperature above 0"});
  refused("    top_k: 5\n", {"key 'top_k'", "a temperature above 0"});
  refused("    repeats: 0\n    temperature: 1\n", {"key 'repeats'"});
  refused("    stop: \"\"\n", {"key 'stop'", "none empty"});
  refused(
      "    stop: [\"\", a]\n",
      {"g.yaml:9:12: key 'stop': expected item 1 of the list to be a string that is not empty, found the string ''"});
  refused("    stop: [a, ~]\n", {"key 'stop'", "item 2 of the list"});
  refused("    stop: [a, [b]]\n", {"g.yaml:9:15: key 'stop'", "item 2 of the list"});
  refused("    ignore_eos: true\n    end_tokens: [2]\n", {"g.yaml:10:17: key 'end_tokens'", "ignore_eos"});
  refused("    end_tokens: [-1]\n", {"key 'end_tokens'"});
  refused("    batch: 0\n", {"key 'batch'"});
  refused("    mode: stepwise\n", {"g.yaml:9:5: key 'mode': unknown in a generation workload", "max_tokens"});
  refused("    context: 12\n", {"g.yaml:9:5: key 'context'"});
}

TEST(GenerationConfig, RefusesPromptsThatSayNotWhereFrom) {
  EXPECT_THAT(refusal_of("    max_tokens: 3\n"), HasSubstr("key 'prompts': missing"));
  EXPECT_THAT(refusal_of("    prompts: p.jsonl\n"), HasSubstr("g.yaml:8:14: key 'prompts'"));
  EXPECT_THAT(refusal_of("    prompts: {count: 3}\n"), HasSubstr("path, text, samples or recall"));
  EXPECT_THAT(refusal_of("    prompts: {path: p, tokens: 3}\n"), HasSubstr("key 'tokens': unknown"));
  EXPECT_THAT(refusal_of("    prompts: {text: t.txt, tokens: 3}\n"), HasSubstr("key 'count': missing"));
  EXPECT_THAT(refusal_of("    prompts: {text: {paths: t.txt}, tokens: 3, count: 1}\n"), HasSubstr("paths"));
  EXPECT_THAT(refusal_of("    prompts: {recall: {kind: facts}}\n"), HasSubstr("lengths"));
  EXPECT_THAT(refusal_of("    prompts: {samples: {file: x}}\n"), HasSubstr("file"));
}

TEST(GenerationConfig, DecidesTheIdentity) {
  const auto identity = [](const std::string& more) {
    return config_identity(parse_run_config(config(prompts + more), "g.yaml"));
  };
  EXPECT_EQ(identity(""), identity("    temperature: 0\n    max_tokens: 256\n    prompt: prefill\n"));
  for (const char* more : {"    temperature: 1\n", "    seed: 1\n", "    stop: x\n", "    ignore_eos: true\n",
                           "    end_tokens: [1]\n", "    batch: 3\n", "    prompt: decode\n", "    max_tokens: 8\n"})
    EXPECT_NE(identity(""), identity(more)) << more;
}

}  // namespace
}  // namespace replayeval
