// What a model's answers are worth, document by document.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/tasks/response_filter.h"
#include "datasets/tasks/rolling_windows.h"
#include "datasets/tasks/task_document.h"
#include "datasets/tasks/task_settings.h"
#include "datasets/tasks/text_match.h"

namespace replayeval::tasks {

struct RequestScore {
  double log_likelihood = 0;  // natural logarithm, summed over the continuation's tokens
  bool is_greedy = false;     // whether each of them is the likeliest (the first of the likeliest)
};

struct DocumentResponse {
  std::vector<RequestScore> scores;  // one for each of TaskDocument::requests; of generate_until none
  std::vector<std::string> texts;    // generate_until: one a repeat, cut at its stop strings
};

// The response to a document from the scores of EncodedDocument::scoring, in order: windows add up.
DocumentResponse response_of(const TaskDocument& document, std::span<const RequestScore> scores);

// How values of documents become the task's.
enum class Aggregation {
  mean,
  perplexity,           // exp(-mean)
  weighted_perplexity,  // exp(-Σ value / Σ count)
  bits_per_byte,        // -Σ value / Σ count / ln 2
  f1,                   // of the class 1; value: the choice, count: the right one
  mcc,                  // Matthews's correlation coefficient; as f1
};

struct MetricDefinition {
  std::string_view name;
  RequestType type;
  Aggregation aggregation;
  bool higher_is_better;
};
// nullptr if there is none of that name for that type.
const MetricDefinition* find_metric(std::string_view name, RequestType type);

struct MetricValue {
  std::string metric;
  double value = 0, count = 1;
  OrderedJson shown;  // as a sample's row has it
};

struct FilterScores {
  std::string filter;
  FilteredTexts texts;  // generate_until
  std::vector<MetricValue> metrics;
};

// acc, acc_norm, acc_bytes, acc_mutual_info, exact_match, brier_score, f1, mcc (multiple_choice); acc, perplexity
// (loglikelihood); word_perplexity, byte_perplexity, bits_per_byte (loglikelihood_rolling); exact_match, contains, f1
// (generate_until): as ConfigurableTask.process_results of the harness. Of equal choices the first one counts.
class TaskScorer {
 public:
  // Throws DataError, `place` first, on filters or options that are not supported. Metrics that are unknown are left
  // out and named by unknown_metrics(); it throws, too, where none is left.
  TaskScorer(const TaskSettings& settings, const std::string& place);

  // One entry a filter. `response` fits the document.
  std::vector<FilterScores> score(const TaskDocument& document, const DocumentResponse& response) const;

  const std::vector<std::string>& unknown_metrics() const { return unknown_; }
  // Sentences for the results: metrics that are unknown, or that the task computes by code of its own.
  std::vector<std::string> warnings() const;

 private:
  struct Metric {
    const MetricDefinition* definition = nullptr;
    std::optional<ExactMatch> exact_match;
  };
  MetricValue of_texts(const Metric& metric, const TaskDocument& document, const FilteredTexts& filtered) const;

  RequestType type_;
  bool own_code_ = false;
  std::vector<ResponseFilter> filters_;
  std::vector<Metric> metrics_;
  std::vector<std::string> unknown_;
};

}  // namespace replayeval::tasks
