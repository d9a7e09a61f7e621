// What is said of files that are not as they should be.
#include "datasets/tasks/task_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TaskFile : public ::testing::Test {
 protected:
  TaskSource open(const std::string& text, TaskSourceSpec spec = {}) {
    spec.path = "task.jsonl";
    file_ = folder_.write(spec.path, text).string();
    return TaskSource::open(spec, folder_.path());
  }
  // Without the file's name.
  std::string refusal(const std::string& text, const TaskSourceSpec& spec = {}) {
    const std::string message = message_of<datasets::DataError>([&] { open(text, spec); });
    EXPECT_TRUE(message.empty() || message.starts_with(file_ + ": ")) << message;
    return message.empty() ? message : message.substr(file_.size() + 2);
  }

  ScratchFolder folder_;
  std::string file_;
};

std::string row(const std::string& id, const std::string& arguments, const std::string& more = "") {
  return R"({"doc_id": )" + id + R"(, "doc": {}, "target": "0", "arguments": )" + arguments + more + "}\n";
}

const std::string pair = R"({"gen_args_0": {"arg_0": "a", "arg_1": " b"}})";

TEST_F(TaskFile, RowsOfTheHarness) {
  EXPECT_EQ(refusal(row("\"x\"", pair)),
            "line 1: doc_id: found \"x\", expected a whole number from 0 to 9007199254740992");
  EXPECT_EQ(refusal(row("0", pair) + "\n" + row("0", pair)),
            "line 3: doc_id: found 0 again (line 1 has it), expected each document once a filter");
  EXPECT_EQ(refusal(row("0", "{}")),
            "line 1: arguments: found an object of 0 members, expected an object of gen_args_0, gen_args_1, ...");
  EXPECT_EQ(refusal(row("0", R"({"gen_args_0": {"arg_1": "x"}})")),
            "line 1: arguments.gen_args_0: 'arg_0' is missing or null; expected a text");
  EXPECT_EQ(refusal(row("0", R"({"gen_args_1": {"arg_0": "x"}})")),
            "line 1: arguments: 'gen_args_0' is missing or null");
  EXPECT_EQ(
      refusal(row("0", pair) + row("1", R"({"gen_args_0": {"arg_0": "x"}})")),
      "line 2: arguments.gen_args_0: 'arg_1' is missing or null; expected one, as the task's type is loglikelihood");
  EXPECT_EQ(refusal(row("0", pair) + row("1", R"({"gen_args_0": {"arg_0": "x", "arg_1": 5}})")),
            "line 2: arguments.gen_args_0.arg_1: found 5, expected a string");
  EXPECT_EQ(refusal(row("0", pair, R"(, "filter": "a")") + row("1", pair, R"(, "filter": "b")") +
                    row("0", pair, R"(, "filter": "b")")),
            "found 2 documents under the filter 'b', expected 1 as under 'a'");
  EXPECT_EQ(refusal(row("0", pair) + "{\"context\": \"x\"}\n"),
            "line 2: found no doc_id and arguments; expected a row of the harness's, as the first row is");
  EXPECT_THAT(refusal(row("0", R"({"gen_args_0": {"arg_0": "x", "arg_1": {}}})", R"(, "filter": "strict")")),
              HasSubstr("what the filter 'strict' does is not said; expected the harness's results file"));
  TaskSourceSpec rolling;
  rolling.type = RequestType::loglikelihood_rolling;
  EXPECT_EQ(refusal(row("0", pair), rolling),
            "line 1: arguments.gen_args_0.arg_1: found \" b\", expected none in a loglikelihood_rolling request");
}

TEST_F(TaskFile, NothingOrSomethingElse) {
  EXPECT_EQ(refusal("\n\n"), "holds no document; expected one JSON object a line");
  EXPECT_EQ(refusal("[1]\n"), "line 1: found a list of 1 elements, expected an object");
  EXPECT_EQ(refusal("{\"text\": \"\xff\"}\n"), "line 1: byte 10: found ff 22 7d, expected UTF-8");
  EXPECT_EQ(refusal("{\"text\": \"a\"}\n{\"text\": \n"), "line 2: byte 10: not JSON; expected one value in UTF-8");
  TaskSourceSpec pinned;
  pinned.sha256 = "00";
  EXPECT_THAT(refusal("{\"text\": \"a\"}\n", pinned), HasSubstr("expected 00"));
  TaskSourceSpec missing;
  missing.path = "none.jsonl";
  EXPECT_THAT(message_of<datasets::DataError>([&] { TaskSource::open(missing, folder_.path()); }),
              HasSubstr("none.jsonl: cannot be opened"));
}

TEST_F(TaskFile, TheRightContextMustBeKnown) {
  const std::string contexts =
      R"({"gen_args_0": {"arg_0": "a", "arg_1": " c"}, "gen_args_1": {"arg_0": "b", "arg_1": " c"},
      "gen_args_2": {"arg_0": "d", "arg_1": " c"}})";
  std::string line = row("0", contexts);
  line.erase(line.find('\n'), 1);
  EXPECT_THAT(refusal(line),
              HasSubstr("line 1: which of its contexts is right stands nowhere in the row; expected gold_key"));
}

TEST_F(TaskFile, LinesEndAtNewlinesAlone) {
  TaskSource source = open(
      "{\"text\": \"a\xE2\x80\xA8"
      "b\xC2\x85\"}\r\n{\"text\": \"last\", \"x\": NaN}");
  EXPECT_EQ(source.document_count(), 2);
  EXPECT_EQ(source.next()->requests[0].continuation,
            "a\xE2\x80\xA8"
            "b\xC2\x85");
  const auto last = source.next();
  EXPECT_EQ(last->line, 2);
  EXPECT_TRUE(std::isnan(last->doc.at("x").get<double>()));
  EXPECT_EQ(source.describe().at("form"), "plain");
  EXPECT_EQ(source.name(), "task");
}

TEST_F(TaskFile, OlderRowsHaveLists) {
  TaskSource source = open(row("3", R"([["a", " b"], ["a", " c"]])"));
  const auto document = source.next();
  EXPECT_EQ(document->id, 3);
  EXPECT_EQ(document->type, RequestType::multiple_choice);
  EXPECT_THAT(document->choices, ElementsAre("b", "c"));
  EXPECT_THAT(document->gold, ElementsAre(0U));
}

TEST(TaskSourceSpec, KeysAndTypes) {
  const auto parse = [](const std::string& text) {
    return parse_task_source(nlohmann::json::parse(text), "c.yaml: task");
  };
  EXPECT_EQ(parse("\"x.jsonl\"").path, "x.jsonl");
  const std::string all = R"({"path": "x", "name": "n", "type": "generate_until", "metrics": ["exact_match"],
    "filters": [{"name": "f", "filter": [{"function": "take_first"}]}], "gold_key": "g", "gold_base": 1, "repeats": 2,
    "max_documents": 3, "target_delimiter": "", "sha256": "00", "results": "r.json"})";
  EXPECT_EQ(to_json(parse(all)), nlohmann::json::parse(all));
  const auto message = [&](const std::string& text) { return message_of<datasets::DataError>([&] { parse(text); }); };
  EXPECT_THAT(message(R"({"path": "x", "kind": 1})"), HasSubstr("c.yaml: task: 'kind' is no key of a task"));
  EXPECT_EQ(message(R"({"path": "x", "type": "choice"})"),
            "c.yaml: task.type: found \"choice\", expected loglikelihood, loglikelihood_rolling, multiple_choice or "
            "generate_until");
  EXPECT_THAT(message(R"({"path": "x", "filters": [{"name": "f"}]})"), HasSubstr("'filter' is missing"));
}

}  // namespace
}  // namespace replayeval::tasks
