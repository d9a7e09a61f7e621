// Rows of samples_<task>_<date>.jsonl as the harness writes them, so that its own tools read them.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "datasets/tasks/task_document.h"
#include "datasets/tasks/task_metrics.h"

namespace replayeval::tasks {

// doc_id, doc, target, arguments, resps, filtered_resps, filter, metrics, the three hashes (of plain tasks as of the
// harness's) and each metric as a member of its own. Numbers in responses are strings, as Python prints floats. But for
// the probabilities of brier_score, which the harness prints as NumPy does and here are numbers, a row is the harness's
// byte for byte.
OrderedJson sample_row(const TaskDocument& document, const DocumentResponse& response, const FilterScores& scores);

// Writes documents' rows, filter by filter. The file appears under its name when finish() is called; without it,
// nothing is left.
class SampleWriter {
 public:
  // Throws DataError naming the file if it cannot be written, as the other two do.
  explicit SampleWriter(std::filesystem::path file);
  ~SampleWriter();
  SampleWriter(const SampleWriter&) = delete;
  SampleWriter& operator=(const SampleWriter&) = delete;

  // The same filters in the same order for every document.
  void add(const TaskDocument& document, const DocumentResponse& response, const std::vector<FilterScores>& scores);
  void finish();

 private:
  struct Part;

  std::filesystem::path file_;
  std::vector<std::unique_ptr<Part>> parts_;  // one a filter
};

}  // namespace replayeval::tasks
