#include "datasets/tasks/sample_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "datasets/error.h"
#include "datasets/tasks/python_text.h"

namespace replayeval::tasks {
namespace {

OrderedJson shown(const TaskDocument& document, const RequestScore& score) {
  std::string number = python_float(score.log_likelihood);
  if (document.type == RequestType::loglikelihood_rolling) return number;
  return OrderedJson::array({std::move(number), score.is_greedy ? "True" : "False"});
}

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw datasets::DataError(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
}

}  // namespace

OrderedJson sample_row(const TaskDocument& document, const DocumentResponse& response, const FilterScores& scores) {
  OrderedJson row, responses = OrderedJson::array(), filtered = OrderedJson::array(), metrics = OrderedJson::array();
  if (document.type == RequestType::generate_until) {
    responses.push_back(response.texts);
    filtered.push_back(scores.texts.single ? OrderedJson(scores.texts.texts.at(0)) : OrderedJson(scores.texts.texts));
  }
  for (const RequestScore& score : response.scores) {
    filtered.push_back(shown(document, score));
    responses.push_back(OrderedJson::array({filtered.back()}));
  }
  for (const MetricValue& metric : scores.metrics) metrics.push_back(metric.metric);
  row["doc_id"] = document.id;
  row["doc"] = document.doc;
  row["target"] = document.target;
  row["arguments"] = document.arguments;
  row["resps"] = std::move(responses);
  row["filtered_resps"] = std::move(filtered);
  row["filter"] = scores.filter;
  row["metrics"] = std::move(metrics);
  row["doc_hash"] = document.doc_hash;
  row["prompt_hash"] = document.prompt_hash;
  row["target_hash"] = document.target_hash;
  for (const MetricValue& metric : scores.metrics) row[metric.metric] = metric.shown;
  return row;
}

struct SampleWriter::Part {
  explicit Part(std::filesystem::path name) : file(std::move(name)), stream(file, std::ios::binary | std::ios::trunc) {
    if (!stream) fail(file);
  }
  ~Part() {
    stream.close();
    std::error_code ignored;  // already renamed
    std::filesystem::remove(file, ignored);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  std::filesystem::path file;
  std::ofstream stream;
};

SampleWriter::SampleWriter(std::filesystem::path file) : file_(std::move(file)) {}
SampleWriter::~SampleWriter() = default;

void SampleWriter::add(const TaskDocument& document, const DocumentResponse& response,
                       const std::vector<FilterScores>& scores) {
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (i == parts_.size()) parts_.push_back(std::make_unique<Part>(fmt::format("{}.part{}", file_.string(), i)));
    parts_[i]->stream << write_python_json(sample_row(document, response, scores[i])) << '\n';
    if (!parts_[i]->stream) fail(parts_[i]->file);
  }
}

void SampleWriter::finish() {
  if (parts_.empty()) parts_.push_back(std::make_unique<Part>(file_.string() + ".part0"));
  std::ofstream& first = parts_[0]->stream;
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    parts_[i]->stream.close();
    std::ifstream rest(parts_[i]->file, std::ios::binary);
    first << rest.rdbuf();
  }
  first.close();
  if (!first) fail(parts_[0]->file);
  std::error_code error;
  std::filesystem::rename(parts_[0]->file, file_, error);
  if (error) throw datasets::DataError(fmt::format("{}: cannot be written: {}", file_.string(), error.message()));
  parts_.clear();
}

}  // namespace replayeval::tasks
