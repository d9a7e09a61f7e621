#include "eval/comparator/tasks/task_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace replayeval {
namespace {

using ::testing::HasSubstr;

RunConfig parse(const std::string& workload) {
  return parse_run_config(
      "name: x\ncheckpoint: c\narms:\n  - {name: a, executor: exact, state_storage: float32}\nworkloads:\n  - {" +
          workload + "}\n",
      "x.yaml");
}

std::string refusal(const std::string& workload) {
  try {
    parse(workload);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(TaskConfig, DefaultsAreWrittenOut) {
  const RunConfig config = parse("name: t, kind: task, source: samples_t.jsonl");
  EXPECT_TRUE(config.needs_tokenizer());
  EXPECT_EQ(to_json(config).at("workloads").at(0),
            nlohmann::json::parse(R"({"name": "t", "kind": "task", "source": {"path": "samples_t.jsonl"}, "block": 256,
                                      "mode": "teacher_forced", "prompt": "prefill"})"));
}

TEST(TaskConfig, EveryKeyArrives) {
  const RunConfig config = parse(
      "name: t, kind: task, source: {path: t.jsonl, type: multiple_choice, max_documents: 5, metrics: [acc, "
      "{metric: acc_norm}]}, block: 8, mode: stepwise, prompt: decode, margin: 0.01");
  EXPECT_EQ(to_json(config).at("workloads").at(0),
            nlohmann::json::parse(R"({"name": "t", "kind": "task", "source": {"path": "t.jsonl", "type":
                                      "multiple_choice", "max_documents": 5, "metrics": ["acc", {"metric": "acc_norm"}]},
                                      "block": 8, "mode": "stepwise", "prompt": "decode", "margin": 0.01})"));
}

TEST(TaskConfig, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal("name: t, kind: task"),
              HasSubstr("key 'source': missing from a task workload; expected a file of samples"));
  EXPECT_THAT(
      refusal("name: t, kind: recal, tasks: []"),
      HasSubstr("x.yaml:6:21: key 'kind': expected one of perplexity, recall, task, generation, churn, found 'recal'"));
  EXPECT_THAT(refusal("name: t, source: t.jsonl"),
              HasSubstr("x.yaml:6:5: key 'kind': missing from a workload; expected one of perplexity"));
  EXPECT_THAT(refusal("name: t, kind: recall, tasks: []"), HasSubstr("found an empty list"));
  EXPECT_THAT(refusal("name: t, kind: task, source: t.jsonl, seed: 9223372036854775808"),
              HasSubstr("expected a whole number from 0 to 9223372036854775807, found '9223372036854775808'"));
  EXPECT_THAT(refusal("name: t, kind: task, source: ''"), HasSubstr("x.yaml:6:"));
  EXPECT_THAT(refusal("name: t, kind: task, source: t.jsonl, stride: 3"), HasSubstr("'stride'"));
  EXPECT_THAT(refusal("name: t, kind: task, source: {path: t.jsonl, typ: x}"), HasSubstr("'typ' is no key of a task"));
  EXPECT_THAT(refusal("name: t, kind: task, source: {path: t.jsonl, type: x}"), HasSubstr("loglikelihood_rolling"));
  EXPECT_THAT(refusal("name: t, kind: task, source: t.jsonl, margin: 1"), HasSubstr("key 'margin': expected"));
  EXPECT_THAT(refusal("name: t, kind: task, source: t.jsonl, prompt: fill"), HasSubstr("key 'prompt': expected"));
}

}  // namespace
}  // namespace replayeval
