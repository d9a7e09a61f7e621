// Samples that the harness wrote (see make_samples.py): read, scored from the responses in them and written again, they
// give the harness's metrics, its standard errors and its rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "datasets/tasks/python_text.h"
#include "datasets/tasks/sample_writer.h"
#include "datasets/tasks/task_source.h"
#include "datasets/tasks/task_totals.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

using ::testing::ElementsAre;

const std::filesystem::path data = "tests/datasets/tasks/data";
const std::string date = "2026-01-01T00-00-00.000000";
constexpr std::int64_t bootstrap_iterations = 2000;  // as make_samples.py has it

TaskSource opened(const std::string& task, TaskSourceSpec spec = {}) {
  spec.path = "samples_" + task + "_" + date + ".jsonl";
  return TaskSource::open(spec, data);
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

double number(const OrderedJson& text) {
  const auto& digits = text.get_ref<const std::string&>();
  double value = NAN;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// What the row says that the model answered.
DocumentResponse response_in(const OrderedJson& row, RequestType type) {
  DocumentResponse response;
  for (const OrderedJson& request : row.at("resps")) {
    if (type == RequestType::generate_until)
      response.texts = request.get<std::vector<std::string>>();
    else if (type == RequestType::loglikelihood_rolling)
      response.scores.push_back({number(request[0]), false});
    else
      response.scores.push_back({number(request[0][0]), request[0][1] == "True"});
  }
  return response;
}

std::vector<std::string> tasks() {
  return {"letters_of_choice", "yes_no", "several_right", "fill_blank", "last_word",
          "whole_text",        "sums",   "sums_untaken",  "any_answer"};
}

// Without the probabilities of brier_score, which the harness prints as NumPy does.
std::string without_probabilities(const std::string& line) {
  OrderedJson row = read_python_json(line, "row");
  if (const auto score = row.find("brier_score"); score != row.end()) score->erase(1);
  return write_python_json(row);
}

class HarnessSamples : public ::testing::TestWithParam<std::string> {};

TEST_P(HarnessSamples, AreWrittenAgainByteForByte) {
  TaskSource source = opened(GetParam());
  const std::vector<std::string> lines = lines_of(data / source.spec().path);
  const TaskScorer scorer(source.settings(), "test");
  EXPECT_TRUE(scorer.unknown_metrics().empty());
  const ScratchFolder folder;
  SampleWriter writer(folder.path() / "samples.jsonl");
  std::int64_t documents = 0;
  while (const auto document = source.next()) {
    const OrderedJson row = read_python_json(lines.at(static_cast<std::size_t>(document->line - 1)), "row");
    const DocumentResponse response = response_in(row, document->type);
    writer.add(*document, response, scorer.score(*document, response));
    ++documents;
  }
  writer.finish();
  EXPECT_EQ(documents, source.document_count());
  const std::vector<std::string> written = lines_of(folder.path() / "samples.jsonl");
  ASSERT_EQ(written.size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool plain = lines[i].find("brier_score") == std::string::npos;
    EXPECT_TRUE(plain ? written[i] == lines[i] : without_probabilities(written[i]) == without_probabilities(lines[i]))
        << written[i] << "\n"
        << lines[i];
  }
}

TEST_P(HarnessSamples, GiveTheHarnessesResults) {
  TaskSource source = opened(GetParam());
  const std::vector<std::string> lines = lines_of(data / source.spec().path);
  const TaskScorer scorer(source.settings(), "test");
  TaskTotals totals(*source.settings().type);
  while (const auto document = source.next()) {
    const OrderedJson row = read_python_json(lines.at(static_cast<std::size_t>(document->line - 1)), "row");
    totals.add(scorer.score(*document, response_in(row, document->type)));
  }
  std::ifstream file(data / ("results_" + date + ".json"));
  const OrderedJson expected = OrderedJson::parse(file).at("results").at(GetParam());
  ASSERT_FALSE(totals.series().empty());
  for (const MetricSeries& series : totals.series()) {
    const Estimate estimate = aggregate(series, bootstrap_iterations);
    const std::string key = series.metric + "," + series.filter;
    EXPECT_NEAR(estimate.value, expected.at(key).get<double>(), 1e-12 * std::abs(estimate.value)) << key;
    const OrderedJson& error = expected.at(series.metric + "_stderr," + series.filter);
    ASSERT_EQ(estimate.standard_error.has_value(), error.is_number()) << key;
    if (estimate.standard_error) {
      EXPECT_NEAR(*estimate.standard_error, error.get<double>(), 1e-11 * std::abs(error.get<double>())) << key;
    }
  }
}

TEST_P(HarnessSamples, TellTheirTypeWithoutTheResultsFile) {
  const ScratchFolder folder;
  const TaskSource with = opened(GetParam());
  if (with.settings().type == RequestType::generate_until && !with.settings().filters.empty()) return;  // must be told
  std::filesystem::copy(data / with.spec().path, folder.path() / "alone.jsonl");
  TaskSourceSpec spec;
  spec.path = "alone.jsonl";
  spec.target_delimiter = with.settings().target_delimiter;
  TaskSource alone = TaskSource::open(spec, folder.path()), source = with;
  EXPECT_EQ(alone.settings().type, with.settings().type);
  EXPECT_EQ(alone.document_count(), with.document_count());
  EXPECT_EQ(alone.request_count(), with.request_count());
  while (const auto document = alone.next()) {
    const auto other = source.next();
    EXPECT_EQ(document->choices, other->choices);
    EXPECT_EQ(document->gold, other->gold);
    EXPECT_EQ(document->targets, other->targets);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HarnessSamples, ::testing::ValuesIn(tasks()),
                         [](const auto& task) { return task.param; });

TEST(HarnessSamples, RequestsAreAsTheHarnessMadeThem) {
  TaskSource source = opened("letters_of_choice");
  EXPECT_EQ(source.document_count(), 7);
  EXPECT_EQ(source.request_count(), 7 * 8);  // acc_mutual_info doubles them
  const auto document = source.next();
  EXPECT_EQ(document->requests.size(), 2 * document->choices.size());
  EXPECT_THAT(document->choices, ElementsAre("blue", "green as grass", "a colour", "none"));
  EXPECT_THAT(document->gold, ElementsAre(0U));
  EXPECT_EQ(document->requests[1].continuation, " green as grass");
  EXPECT_TRUE(document->requests[1].context.starts_with("Choose.\n\nQ: "));
  EXPECT_TRUE(document->requests[1].context.ends_with("Q: The sky on a clear day is\nA:"));
  EXPECT_EQ(document->requests[5].context, "");
  EXPECT_EQ(document->requests[5].continuation, " green as grass");
}

TEST(HarnessSamples, GenerationArgumentsAsWritten) {
  TaskSource sums = opened("sums"), any = opened("any_answer");
  const auto sum = sums.next();
  EXPECT_EQ(sum->repeats, 3);
  EXPECT_EQ(sum->generation.max_tokens, 256);
  EXPECT_FALSE(sum->generation.sample);
  EXPECT_THAT(sum->generation.until, ElementsAre("Question:", "</s>"));
  EXPECT_THAT(sum->targets, ElementsAre("5"));
  const auto answer = any.next();
  EXPECT_EQ(answer->generation.max_tokens, 24);
  EXPECT_TRUE(answer->generation.sample);
  EXPECT_EQ(answer->generation.temperature, 0.7);
  EXPECT_EQ(answer->generation.top_p, 0.9);
  EXPECT_THAT(answer->generation.until, ElementsAre("\n\n"));
  EXPECT_THAT(answer->targets, ElementsAre("red", "Blue", "grün"));
  EXPECT_TRUE(answer->several_targets);
  EXPECT_THAT(any.next()->targets, ElementsAre("it's İstanbul", "say \"Rom\"", "ΟΔΟΣ"));
}

TEST(HarnessSamples, OneContinuationBehindSeveralContexts) {
  TaskSource source = opened("fill_blank");
  const auto first = source.next(), second = source.next();
  EXPECT_THAT(first->choices, ElementsAre("It does not fit into the trophy", "It does not fit into the suitcase"));
  EXPECT_THAT(first->gold, ElementsAre(0U));
  EXPECT_THAT(second->gold, ElementsAre(1U));
  TaskSourceSpec spec;
  spec.gold_key = "answer";
  TaskSource told = opened("fill_blank", spec);
  while (const auto document = told.next())
    EXPECT_EQ(document->gold, std::vector<std::size_t>{document->doc.at("answer").get<std::size_t>()});
}

TEST(HarnessSamples, ACopyHasAPlaceOfItsOwn) {
  TaskSource source = opened("yes_no");
  source.next();
  TaskSource copy = source;
  EXPECT_EQ(copy.next()->id, 1);
  EXPECT_EQ(copy.next()->id, 2);
  EXPECT_EQ(source.next()->id, 1);
  source.rewind();
  EXPECT_EQ(source.next()->id, 0);
  TaskSourceSpec spec;
  spec.max_documents = 2;
  TaskSource few = opened("yes_no", spec);
  EXPECT_EQ(few.document_count(), 2);
  EXPECT_TRUE(few.next() && few.next());
  EXPECT_FALSE(few.next());
}

TEST(HarnessSamples, WordsAndBytesAreCountedAsTheHarnessDoes) {
  TaskSource source = opened("whole_text");
  const std::vector<std::string> lines = lines_of(data / source.spec().path);
  while (const auto document = source.next()) {
    const OrderedJson row = read_python_json(lines.at(static_cast<std::size_t>(document->line - 1)), "row");
    const std::string& text = document->requests[0].continuation;
    EXPECT_EQ(word_count(text), row.at("word_perplexity")[1].get<std::int64_t>());
    EXPECT_EQ(text.size(), row.at("byte_perplexity")[1].get<std::size_t>());
  }
}

}  // namespace
}  // namespace replayeval::tasks
