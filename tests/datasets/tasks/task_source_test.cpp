// What is said of files that are not as they should be.
#include "datasets/tasks/task_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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
            "line 1: arguments: found an empty object, expected an object of gen_args_0, gen_args_1, ...");
  EXPECT_EQ(refusal(row("0", R"({"gen_args_0": {"arg_1": "x"}})")),
            "line 1: arguments.gen_args_0: 'arg_0' is missing or null; expected a text");
  EXPECT_EQ(refusal(row("0", R"({"gen_args_1": {"arg_0": "x"}})")),
            "line 1: arguments: 'gen_args_0' is missing or null; expected a value");
  EXPECT_EQ(
      refusal(row("0", pair) + row("1", R"({"gen_args_0": {"arg_0": "x"}})")),
      "line 2: arguments.gen_args_0: 'arg_1' is missing or null; expected one, as the task's type is loglikelihood");
  EXPECT_EQ(refusal(row("0", pair) + row("1", R"({"gen_args_0": {"arg_0": "x", "arg_1": 5}})")),
            "line 2: arguments.gen_args_0.arg_1: found 5, expected a string");
  EXPECT_EQ(refusal(row("0", pair, R"(, "filter": "a")") + row("1", pair, R"(, "filter": "b")") +
                    row("0", pair, R"(, "filter": "b")")),
            "found 2 documents under the filter 'b', expected 1 as under 'a'");
  const std::string a = R"(, "filter": "a")", b = R"(, "filter": "b")";
  EXPECT_EQ(refusal(row("0", pair, a) + row("1", pair, b)),
            "line 2: doc_id: found 1, expected a document of the filter 'a'");
  EXPECT_EQ(refusal(row("0", pair, a) + row("0", R"({"gen_args_0": {"arg_0": "a", "arg_1": " c"}})", b)),
            "line 2: arguments: found others than in line 1, expected those of document 0");
  EXPECT_EQ(refusal(row("1", pair, b) + row("0", pair, a) + row("0", pair, b) + row("1", pair, a)), "");
  EXPECT_THAT(refusal(row("0", pair, R"(, "filter": "a\nb")")), HasSubstr("filter: found \"a\\nb\", expected a name"));
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
  EXPECT_EQ(refusal("{\"text\": \"\xff\"}\n"), "line 1: byte 11: found ff 22 7d, expected UTF-8");
  EXPECT_EQ(refusal("{\"text\": \"a\"}\n{\"text\": \n"),
            "line 2: ends inside a value; expected JSON Lines, one document a line");
  EXPECT_EQ(refusal("{\n  \"text\": \"a\"\n}\n"),
            "line 1: ends inside a value; expected JSON Lines, one document a line")
      << "a JSON file of several lines";
  EXPECT_EQ(refusal("{\"text\": a}\n"), "line 1: byte 10: not JSON; expected one value in UTF-8");
  EXPECT_EQ(refusal("{\"text\": \"a\", \"x\": {\"y\": 1}, \"text\": \"b\"}\n"),
            "line 1: found \"text\", expected each key of an object once: this one stands there twice");
  EXPECT_EQ(refusal("{\"text\": \"a\", \"x\": {\"y\": 1, \"z\": {\"y\": 2}, \"y\": 1}}\n"),
            "line 1: found \"y\", expected each key of an object once: this one stands there twice");
  EXPECT_EQ(refusal("{\"text\": \"a\", \"x\": [{\"y\": 1}, {\"y\": {\"text\": NaN}}]}\n"), "");
  EXPECT_EQ(refusal("\x1f\x8b\x08..."), "is compressed (gzip); expected JSON lines");
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

// [LOG-LIKELIHOOD, GREEDY] of each, and whether the model was right.
std::string two_contexts(const std::string& responses, const std::string& acc) {
  return row("0", R"({"gen_args_0": {"arg_0": "a", "arg_1": " c"}, "gen_args_1": {"arg_0": "b", "arg_1": " c"}})",
             R"(, "filtered_resps": )" + responses + R"(, "acc": )" + acc);
}

TEST_F(TaskFile, TheRightContextIsNotGuessed) {
  const std::string good = R"([["-1.5", "False"], ["-2.5", "False"]])";
  const auto gold = [&](const std::string& responses, const std::string& acc) {
    TaskSource source = open(two_contexts(responses, acc));
    return source.next()->gold;
  };
  EXPECT_THAT(gold(good, "1.0"), ElementsAre(0U));
  EXPECT_THAT(gold(good, "0"), ElementsAre(1U));
  EXPECT_THAT(gold("[[-2.5, false], [-1.5, false]]", "1"), ElementsAre(1U));  // numbers are no less clear
  EXPECT_EQ(refusal(two_contexts(good, "0.5")), "line 1: acc: found 0.5, expected 0 or 1");
  EXPECT_EQ(refusal(two_contexts(R"([["nan", "False"], ["-2.5", "False"]])", "1")),
            "line 1: filtered_resps[0][0]: found \"nan\", expected a log-likelihood, a finite number");
  EXPECT_EQ(refusal(two_contexts(R"({"a": 1, "b": 2})", "1")),
            "line 1: filtered_resps: found an object of 2 members, expected a list of [LOG-LIKELIHOOD, GREEDY], 2 or "
            "more");
  EXPECT_EQ(refusal(two_contexts("[1, 2]", "1")),
            "line 1: filtered_resps[0]: found 1, expected [LOG-LIKELIHOOD, GREEDY]");
}

// A row of two choices whose target is `target`, a member of JSON text.
std::string choices(const std::string& target, const std::string& doc = "{}") {
  return R"({"doc_id": 0, "doc": )" + doc + target +
         R"(, "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": " a"}, "gen_args_1": {"arg_0": "q", "arg_1": " b"}}})" +
         "\n";
}

TEST_F(TaskFile, ARightChoiceMustBeNamed) {
  const auto target = [&](const std::string& value) { return refusal(choices(R"(, "target": )" + value)); };
  EXPECT_EQ(target("\"1\""), "");
  EXPECT_EQ(target("\"b\""), "");
  EXPECT_EQ(refusal(choices("")), "line 1: 'target' is missing or null; expected a value");
  EXPECT_EQ(target("null"), "line 1: 'target' is missing or null; expected a value");
  for (const char* wrong : {"\"9\"", "\"-1\"", "\"banana\"", "2"})
    EXPECT_EQ(target(wrong),
              std::string("line 1: target: found ") + wrong + ", expected one of the 2 choices, or its number from 0");
  TaskSourceSpec keyed;
  keyed.gold_key = "gold";
  keyed.gold_base = 1;
  EXPECT_EQ(refusal(choices(R"(, "target": "x")", R"({"gold": 1})"), keyed), "");
  for (const char* wrong : {"0", "3"})
    EXPECT_EQ(
        refusal(choices(R"(, "target": "0")", std::string(R"({"gold": )") + wrong + "}"), keyed),
        std::string("line 1: doc.gold: found ") + wrong + ", expected one of the 2 choices, or its number from 1");
}

TEST_F(TaskFile, MutualInformationNeedsTheChoicesAlone) {
  TaskSourceSpec spec;
  spec.metrics = OrderedJson::parse(R"(["acc", "acc_mutual_info"])");
  const auto with = [&](const std::string& third, const std::string& fourth) {
    return refusal(row("0", R"([["q", " a"], ["q", " b"], )" + third + ", " + fourth + "]"), spec);
  };
  EXPECT_EQ(with(R"(["", " a"])", R"(["", " b"])"), "");
  EXPECT_EQ(with(R"(["", "a"])", R"(["", "b"])"), "");  // as versions of the harness have it
  EXPECT_EQ(with(R"(["", " a"])", R"(["", " x"])"),
            "line 1: arguments.gen_args_3.arg_1: found \" x\", expected the continuation of gen_args_1, for "
            "acc_mutual_info");
  EXPECT_THAT(with(R"(["q", " c"])", R"(["q", " d"])"), HasSubstr("line 1: arguments: found 4 requests"));
  EXPECT_THAT(refusal(choices(R"(, "target": "0")"), spec), HasSubstr("expected one without for each choice"));
}

TEST_F(TaskFile, RecordedCountsAreThoseOfSuchATextAtLeast) {
  const auto words = [&](const std::string& count) {
    return row("0", R"([["hello world"]])", R"(, "word_perplexity": [-1.5, )" + count + "]");
  };
  TaskSource source = open(words("5"));  // of the text before it was detokenized, say
  EXPECT_EQ(source.next()->words, 5);
  EXPECT_EQ(refusal(words("999999")), "line 1: word_perplexity[1]: found 999999, expected a whole number from 1 to 20");
  EXPECT_THAT(refusal(words("-1")), HasSubstr("found -1"));
  EXPECT_THAT(refusal(row("0", R"([["hello world"]])", R"(, "byte_perplexity": [-1.5, 0])")),
              HasSubstr("byte_perplexity[1]: found 0"));
}

TEST_F(TaskFile, KeysThatSayNothingAreRefused) {
  const std::string plain = R"({"context": "a", "choices": ["b", "c"], "answer": 0})";
  TaskSourceSpec spec;
  spec.gold_key = "answer";
  EXPECT_EQ(refusal(plain, spec),
            "gold_key: means nothing for plain rows, which name the answer; expected no such key");
  spec = {};
  spec.results = "results.json";
  folder_.write("results.json", R"({"configs": {"t": {}}})");
  EXPECT_THAT(refusal(plain, spec), HasSubstr("results: means nothing for plain rows"));
  spec = {};
  spec.repeats = 3;
  EXPECT_THAT(refusal(plain, spec), HasSubstr("repeats: means nothing for tasks that generate nothing"));
  EXPECT_EQ(refusal(R"({"context": "a", "answer": "b", "until": "."})", spec), "");
}

// Python's bare NaN, and a text that looks like what stands for it on the way.
TEST_F(TaskFile, TextIsNeverTakenForANumber) {
  TaskSource source = open(R"({"text": "\u0000bare0:NaN", "x": NaN, "y": "\u0000bare1:Infinity"})");
  const auto document = source.next();
  EXPECT_EQ(document->requests[0].continuation, std::string("\0bare0:NaN", 10));
  EXPECT_TRUE(std::isnan(document->doc.at("x").get<double>()));
  EXPECT_TRUE(document->doc.at("y").is_string());
}

TEST_F(TaskFile, IsNoPipe) {
  const std::filesystem::path pipe = folder_.path() / "task.jsonl";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  TaskSourceSpec spec;
  spec.path = "task.jsonl";
  EXPECT_EQ(message_of<datasets::DataError>([&] { TaskSource::open(spec, folder_.path()); }),
            pipe.string() + ": is a pipe; expected a regular file");
  spec.path = "/dev/zero";
  EXPECT_EQ(message_of<datasets::DataError>([&] { TaskSource::open(spec, "/"); }),
            "/dev/zero: is a device; expected a regular file");
}

// Without the harness's results file metrics are guessed, and that is said.
TEST_F(TaskFile, SaysThatNothingStatesTheMetrics) {
  const std::string generation = row("0", R"({"gen_args_0": {"arg_0": "x", "arg_1": {"until": ["."]}}})");
  const auto open_as = [&](const std::string& samples, TaskSourceSpec spec = {}) {
    spec.path = samples;
    folder_.write(samples, generation);
    return TaskSource::open(spec, folder_.path());
  };
  const TaskSource alone = open_as("samples_a_b_2026.jsonl");
  EXPECT_THAT(
      alone.warnings(),
      ElementsAre("no results_2026.json stands beside the samples, so what the harness judges the task by is not "
                  "known; taken for granted: type generate_until, metrics exact_match without options (such as "
                  "ignore_case), no filters. Put the results file there, name it (results: FILE), or state type, "
                  "metrics and filters"));
  EXPECT_TRUE(alone.describe().at("results").is_null());
  TaskSourceSpec stated;
  stated.metrics = OrderedJson::parse(R"([{"metric": "exact_match", "ignore_case": true}])");
  ASSERT_EQ(open_as("samples_a_b_2026.jsonl", stated).warnings().size(), 1U);
  EXPECT_THAT(open_as("samples_a_b_2026.jsonl", stated).warnings()[0], HasSubstr("type generate_until, no filters."));
  stated.filters = OrderedJson::parse(R"([{"name": "none", "filter": [{"function": "take_first"}]}])");
  EXPECT_THAT(open_as("samples_a_b_2026.jsonl", stated).warnings(), ElementsAre());

  const std::string config = R"({"output_type": "generate_until", "metric_list": [{"metric": "exact_match"}]})";
  folder_.write("results_2026.json", R"({"configs": {"other": )" + config + "}}");
  EXPECT_THAT(open_as("samples_a_b_2026.jsonl").warnings()[0],
              HasSubstr("results_2026.json beside the samples has no config of the task 'a_b', so"));
  EXPECT_THAT(open_as("mine.jsonl").warnings()[0], HasSubstr("the samples' name is not samples_<task>_<date>.jsonl"));
  folder_.write("results_2026.json", R"({"configs": {"a_b": )" + config + "}}");
  const TaskSource beside = open_as("samples_a_b_2026.jsonl");
  EXPECT_THAT(beside.warnings(), ElementsAre());
  EXPECT_EQ(beside.describe().at("results"), "results_2026.json");
  TaskSourceSpec named;
  named.results = "results_2026.json";
  EXPECT_THAT(message_of<datasets::DataError>([&] { open_as("mine.jsonl", named); }), "");
  EXPECT_EQ(open_as("mine.jsonl", named).describe().at("results"), "results_2026.json");
  const TaskSource plain = open("{\"text\": \"a\"}\n");
  EXPECT_THAT(plain.warnings(), ElementsAre());
  EXPECT_FALSE(plain.describe().contains("results"));
}

TEST_F(TaskFile, AResultsFileIsTheHarnesses) {
  TaskSourceSpec spec;
  spec.results = "results.json";
  const auto refusal_of = [&](const std::string& results) {
    folder_.write("results.json", results);
    return message_of<datasets::DataError>([&] { open(row("0", pair), spec); });
  };
  EXPECT_THAT(
      refusal_of(R"({"schema_version": 1, "workloads": []})"),
      HasSubstr("results.json: is a results file of replayeval; expected the harness's results file, which holds "
                "'configs'"));
  EXPECT_THAT(refusal_of("{}"),
              HasSubstr("results.json: 'configs' is missing or null; expected the harness's results"));
}

// What a task is judged by comes from the harness's results file: another file is another task.
TEST_F(TaskFile, SettingsHaveAFingerprint) {
  const auto fingerprint_with = [&](const std::string& more) {
    folder_.write("results.json", R"({"configs": {"t": {"output_type": "multiple_choice")" + more + "}}}");
    TaskSourceSpec spec;
    spec.results = "results.json";
    return open(choices(R"(, "target": "0")", R"({"gold": 1})"), spec).describe().at("settings_sha256");
  };
  const auto plain = fingerprint_with("");
  EXPECT_EQ(fingerprint_with(""), plain);
  for (const char* more :
       {R"(, "doc_to_target": "gold")", R"(, "doc_to_choice": ["a", "b"])", R"(, "target_delimiter": "")",
        R"(, "fewshot_delimiter": "x")", R"(, "repeats": 2)", R"(, "metric_list": [{"metric": "acc"}])"})
    EXPECT_NE(fingerprint_with(more), plain) << more;
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
  EXPECT_EQ(message(R"({"path": "x", "metrics": ["acc", {"metric": "acc"}]})"),
            "c.yaml: task.metrics[1]: a second metric 'acc'; expected one of each name");
  EXPECT_EQ(message(R"({"path": "x", "gold_base": 1})"),
            "c.yaml: task.gold_base: means nothing without gold_key; expected both");
  EXPECT_THAT(message(R"({"path": "x", "name": "a\nb|c"})"),
              HasSubstr("c.yaml: task.name: found \"a\\nb|c\", expected a name of at most 64 letters"));
  EXPECT_THAT(message(R"({"path": "x", "metrics": ["a\nb"]})"), HasSubstr("expected a name of at most 200 bytes"));
  EXPECT_THAT(message(R"({"path": "x", "metrics": []})"), HasSubstr("expected at least one metric"));
}

}  // namespace
}  // namespace replayeval::tasks
