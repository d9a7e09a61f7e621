#include "datasets/tasks/task_totals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "datasets/tasks/choice_metrics.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

TEST(TaskTotals, OneDocumentHasNoError) {
  const Estimate estimate = aggregate({"none", "acc", Aggregation::mean, true, {1}, {1}});
  EXPECT_EQ(estimate.value, 1);
  EXPECT_FALSE(estimate.standard_error);
}

TEST(TaskTotals, NoBootstrapWhereNoneIsAskedFor) {
  const MetricSeries series{"none", "perplexity", Aggregation::perplexity, false, {-1, -2, -4}, {1, 1, 1}};
  EXPECT_FALSE(aggregate(series, 0).standard_error);
  EXPECT_TRUE(aggregate(series, 1000).standard_error);
}

// Of aggregate_subtask_metrics, pooled_sample_stderr and unweighted_mean_stderr of the harness for these numbers.
TEST(TaskTotals, Groups) {
  const std::vector<Estimate> tasks = {{0.5, 0.1, 10}, {0.75, 0.05, 30}};
  EXPECT_NEAR(pool(tasks, true).value, 0.6875, 1e-15);
  EXPECT_NEAR(*pool(tasks, true).standard_error, 0.04497806482930845, 1e-15);
  EXPECT_NEAR(pool(tasks, false).value, 0.625, 1e-15);
  EXPECT_NEAR(*pool(tasks, false).standard_error, 0.05590169943749475, 1e-15);
  const std::vector<Estimate> unknown = {{0.5, 0.1, 10}, {0.75, std::nullopt, 30}};
  EXPECT_FALSE(pool(unknown, true).standard_error);
}

TaskDocument two_choices(std::vector<std::string> choices, std::vector<std::size_t> gold) {
  TaskDocument document;
  document.type = RequestType::multiple_choice;
  document.choices = std::move(choices);
  document.gold = std::move(gold);
  return document;
}

TEST(ChoiceMetric, TiesGoToTheFirst) {
  const std::vector<RequestScore> equal = {{-2, false}, {-2, true}};
  EXPECT_EQ(choice_metric("acc", two_choices({"a", "b"}, {0}), equal).value, 1);
  EXPECT_EQ(choice_metric("acc", two_choices({"a", "b"}, {1}), equal).value, 0);
  EXPECT_EQ(choice_metric("exact_match", two_choices({"a", "b"}, {1}), equal).value, 1);
}

TEST(ChoiceMetric, LengthsInCodePointsAndBytes) {
  const std::vector<RequestScore> scores = {{-3, false}, {-4, false}};
  const TaskDocument document = two_choices({"abc", "éé"}, {1});
  EXPECT_EQ(choice_metric("acc", document, scores).value, 0);
  EXPECT_EQ(choice_metric("acc_norm", document, scores).value, 0);   // -1 against -2
  EXPECT_EQ(choice_metric("acc_bytes", document, scores).value, 0);  // -1 against -1: the first
  const std::vector<RequestScore> lower = {{-3.1, false}, {-4, false}};
  EXPECT_EQ(choice_metric("acc_bytes", document, lower).value, 1);
  EXPECT_EQ(choice_metric("acc_norm", document, lower).value, 0);
}

TEST(ChoiceMetric, NaNIsLargestAsInNumPy) {
  const std::vector<RequestScore> scores = {{-3, false}, {NAN, false}};
  EXPECT_EQ(choice_metric("acc", two_choices({"a", "b"}, {1}), scores).value, 1);
}

TEST(TaskScorer, MetricsItDoesNotKnowAreNamed) {
  TaskSettings settings;
  settings.type = RequestType::generate_until;
  settings.metrics = {{"exact_match", OrderedJson::object()}, {"bleu", OrderedJson::object()}};
  settings.own_code = true;
  const TaskScorer scorer(settings, "t");
  EXPECT_EQ(scorer.unknown_metrics(), std::vector<std::string>{"bleu"});
  EXPECT_EQ(scorer.warnings().size(), 2U);
  TaskDocument document;
  document.type = RequestType::generate_until;
  document.targets = {"x"};
  const auto scores = scorer.score(document, {{}, {"x", "y"}});
  ASSERT_EQ(scores.size(), 1U);
  EXPECT_EQ(scores[0].metrics.size(), 1U);
  EXPECT_EQ(scores[0].metrics[0].value, 1);
}

// A task that aggregates by something else is not one whose mean means anything.
TEST(TaskScorer, AggregationsItDoesNotKnowAreNamed) {
  TaskSettings settings;
  settings.type = RequestType::multiple_choice;
  settings.metrics = parse_metrics(
      OrderedJson::parse(R"([{"metric": "acc", "aggregation": "mean"}, {"metric": "acc_norm", "aggregation": "median"},
                             {"metric": "mcc", "aggregation": "matthews_corrcoef"},
                             {"metric": "f1", "aggregation": "def own(items):\n  return 0"},
                             {"metric": "brier_score", "aggregation": "brier_score"}])"),
      "t");
  const TaskScorer scorer(settings, "t");
  EXPECT_EQ(scorer.unknown_metrics(), (std::vector<std::string>{"acc_norm aggregated by median",
                                                                "f1 aggregated by def own(items):\\n  return 0"}));
}

TEST(TaskScorer, RefusesToComputeNothing) {
  TaskSettings settings;
  settings.type = RequestType::multiple_choice;
  settings.metrics = {{"bleu", OrderedJson::object()}, {"word_perplexity", OrderedJson::object()}};
  EXPECT_EQ(message_of<datasets::DataError>([&] { TaskScorer(settings, "t.jsonl"); }),
            "t.jsonl: metrics: found none that is known for multiple_choice (bleu, word_perplexity); expected one or "
            "more of acc, f1, mcc, acc_norm, acc_bytes, exact_match, brier_score, acc_mutual_info");
  settings.metrics.clear();
  EXPECT_EQ(message_of<datasets::DataError>([&] { TaskScorer(settings, "t.jsonl"); }).substr(0, 70),
            "t.jsonl: metrics: found none that is known for multiple_choice; expect");
}

TEST(ResponseOf, WindowsAddUp) {
  TaskDocument document;
  document.type = RequestType::loglikelihood_rolling;
  const std::vector<RequestScore> windows = {{-1.5, true}, {-2, false}};
  const DocumentResponse response = response_of(document, windows);
  ASSERT_EQ(response.scores.size(), 1U);
  EXPECT_EQ(response.scores[0].log_likelihood, -3.5);
  EXPECT_FALSE(response.scores[0].is_greedy);
}

}  // namespace
}  // namespace replayeval::tasks
