#include "datasets/tasks/plain_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datasets/tasks/task_metrics.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

using ::testing::ElementsAre;

TaskDocument read(const std::string& row, TaskSettings settings = {}) {
  PlainTaskReader reader(std::move(settings));
  return reader.read(read_python_json(row, "row"), 5, 6, "f.jsonl: line 6");
}

std::string refusal(const std::string& row, const TaskSettings& settings = {}) {
  return message_of<datasets::DataError>([&] { read(row, settings); });
}

TEST(PlainTask, Choices) {
  const TaskDocument document = read(R"({"context": "Q", "choices": ["a", "b"], "answer": "b"})");
  EXPECT_EQ(document.type, RequestType::multiple_choice);
  EXPECT_EQ(document.id, 5);
  EXPECT_THAT(document.gold, ElementsAre(1U));
  ASSERT_EQ(document.requests.size(), 2U);
  EXPECT_EQ(document.requests[1].continuation, " b");
  EXPECT_THAT(read(R"({"context": "Q", "choices": ["a", "b"], "target": [0, 1]})").gold, ElementsAre(0U, 1U));
}

TEST(PlainTask, MutualInformationDoublesTheRequests) {
  TaskSettings settings;
  settings.metrics = {{"acc_mutual_info", OrderedJson::object()}};
  const TaskDocument document = read(R"({"context": "Q", "choices": ["a", "b"], "answer": 0})", settings);
  EXPECT_EQ(document.requests.size(), 2 * document.choices.size());
  EXPECT_EQ(document.requests[3].context, "");
  EXPECT_EQ(document.requests[3].continuation, " b");
}

TEST(PlainTask, TextsAndTargets) {
  const TaskDocument text = read(R"({"text": "two words"})");
  EXPECT_EQ(text.type, RequestType::loglikelihood_rolling);
  EXPECT_EQ(text.words, 2);
  EXPECT_EQ(text.bytes, 9);
  const TaskDocument target = read(R"({"context": "Q", "target": " A"})");
  EXPECT_EQ(target.type, RequestType::loglikelihood);
  EXPECT_EQ(target.requests[0].continuation, " A");
  const TaskDocument generation = read(R"({"context": "Q", "target": ["A", "B"], "until": "\n", "max_gen_toks": 3})");
  EXPECT_EQ(generation.type, RequestType::generate_until);
  EXPECT_THAT(generation.targets, ElementsAre("A", "B"));
  EXPECT_EQ(generation.target, "['A', 'B']");
  EXPECT_EQ(generation.generation.max_tokens, 3);
  EXPECT_EQ(generation.arguments.dump(), R"({"gen_args_0":{"arg_0":"Q","arg_1":{"until":"\n","max_gen_toks":3}}})");
}

TEST(PlainTask, SaysWhatIsWrong) {
  const std::string at = "f.jsonl: line 6: ";
  EXPECT_EQ(refusal(R"([1])"), "f.jsonl: line 6: found a list of 1 elements, expected an object");
  EXPECT_EQ(refusal(R"({"context": "Q", "choices": ["a", "b"], "answer": 2})"),
            at + "answer: found 2, expected a whole number from 0 to 1");
  EXPECT_EQ(refusal(R"({"context": "Q", "choices": ["a", "b"], "answer": "z"})"),
            at + "answer: found \"z\", expected one of the choices, or its number from 0");
  EXPECT_EQ(refusal(R"({"context": "Q", "choices": [], "answer": 1})"),
            at + "choices: found an empty list, expected a list of two texts or more");
  EXPECT_EQ(refusal(R"({"context": "Q", "choices": ["a", "b"], "answer": 0, "target": 1})"),
            at + "target: found 1, expected 'answer' or 'target': the row has both");
  EXPECT_EQ(refusal(R"({"text": null, "context": "Q", "target": "A"})"),
            at + "text: found null, expected a value, or no such key");
  EXPECT_EQ(refusal(R"({"context": "Q", "choices": ["a", "b"], "answer": NaN})"),
            at + "answer: found NaN, expected a whole number from 0 to 1");
  EXPECT_EQ(refusal(R"({"context": "Q"})"), at + "expected a member 'answer' or 'target'");
  EXPECT_EQ(refusal(R"({"target": "A"})"), at + "'context' is missing or null; expected a value");
  EXPECT_EQ(refusal(R"({"context": "Q", "target": "A", "max_gen_toks": 0})"),
            at.substr(0, at.size() - 2) + ".max_gen_toks: found 0, expected a number of tokens, 1 or more");
  EXPECT_EQ(refusal(R"({"context": "Q", "target": "A", "until": "x", "do_sample": true})"),
            "f.jsonl: line 6: samples at temperature 0; expected a temperature above 0");
}

// Rows to which any answer would be right, and rows that say two things.
TEST(PlainTask, ChoicesDifferAndTheAnswerIsOne) {
  const std::string at = "f.jsonl: line 6: ";
  const auto with = [](const std::string& choices, const std::string& more) {
    return refusal(R"({"context": "Q", "choices": )" + choices + ", " + more + "}");
  };
  EXPECT_EQ(with(R"(["a"])", R"("answer": 0)"),
            at + "choices: found a list of 1 elements, expected a list of two texts or more");
  EXPECT_EQ(with(R"(["a", "b", "a"])", R"("answer": 0)"),
            at + "choices[2]: found \"a\", expected another text than choices[0]");
  EXPECT_EQ(with(R"(["a", ""])", R"("answer": 0)"), at + "choices[1]: found \"\", expected a text that is not empty");
  EXPECT_EQ(with(R"(["a", "b"])", R"("answer": 0, "label": 1)"),
            at + "label: found 1, expected the choice that 'answer' (or 'target') names, or no such key");
  EXPECT_EQ(with(R"(["a", "b"])", R"("answer": "a", "gold": "b")"),
            at + "gold: found \"b\", expected the choice that 'answer' (or 'target') names, or no such key");
  EXPECT_EQ(with(R"(["a", "b"])", R"("answer": 1, "label": "b", "gold": 1)"), "");
  EXPECT_EQ(with(R"(["a", "b"])", R"("answer": 1, "label": "hard", "gold": 7)"), "") << "names no choice";
  EXPECT_EQ(with(R"(["a", "b", "c"])", R"("answer": [0, 1], "gold": 1)"), "");
}

}  // namespace
}  // namespace replayeval::tasks
