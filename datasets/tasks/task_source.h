// Documents of a task, from a file of the harness's samples or of plain JSONL, checked and hashed before the first one
// is used.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/error.h"
#include "datasets/tasks/task_document.h"
#include "datasets/tasks/task_settings.h"

namespace replayeval::tasks {

// What a run's config says about a task. What it leaves out comes from the harness's results file beside the samples,
// else from the rows.
struct TaskSourceSpec {
  std::string name;     // as reports name it; default: the task's, else the file's
  std::string path;     // relative to the root that open() gets
  std::string results;  // the harness's results file; default: the one beside the samples of the same date, if there
  std::optional<RequestType> type;
  OrderedJson metrics, filters;  // as metric_list and filter_list of the harness; null: not said
  std::string gold_key;
  std::int64_t gold_base = 0;
  std::optional<std::string> target_delimiter;
  std::int64_t repeats = 0;        // of plain tasks' generations; 0: 1
  std::int64_t max_documents = 0;  // 0: all
  std::string sha256;              // expected of the file; empty: not pinned
};

// {path, name?, results?, type?, metrics?, filters?, gold_key?, gold_base?, target_delimiter?, repeats?,
// max_documents?, sha256?}, or a string: the path alone. `place` names the object in messages. Throws DataError on
// unknown keys and wrong types.
TaskSourceSpec parse_task_source(const nlohmann::json& object, const std::string& place);
nlohmann::json to_json(const TaskSourceSpec& spec);

// Reads one row at a time. A copy has a place in the documents of its own.
class TaskSource {
 public:
  // Reads the whole file once. Throws DataError, naming file, line, key and what was expected: no such file, no
  // document, a row that is not as it should be, a document twice under one filter, filters that do not hold the
  // same documents with the same arguments, rows of both forms, a hash other than the pinned one, keys of `spec` that
  // say nothing about such rows.
  static TaskSource open(const TaskSourceSpec& spec, const std::filesystem::path& root);

  const TaskSourceSpec& spec() const;
  // Complete: type and metrics as found. An empty list of filters means "none": the first response.
  const TaskSettings& settings() const;
  const std::string& name() const;
  bool is_harness() const;
  std::int64_t document_count() const;  // after max_documents
  std::int64_t request_count() const;   // in them
  const std::string& sha256() const;    // of the file, as `sha256sum FILE` prints it
  // {name, path, form, type, documents, requests, sha256, settings_sha256, filters, metrics}; of the harness's samples
  // also `results`: the path of the results file that states what the task is judged by, null where there is none.
  nlohmann::json describe() const;
  // A sentence where nothing states by what metrics and filters the harness judges the task.
  std::vector<std::string> warnings() const;

  // The rows of the file's first filter, in its order: each document once.
  std::optional<TaskDocument> next();
  void rewind();

  TaskSource(const TaskSource& other);
  TaskSource& operator=(const TaskSource& other);
  TaskSource(TaskSource&&) noexcept = default;
  TaskSource& operator=(TaskSource&&) noexcept = default;
  ~TaskSource() = default;

 private:
  struct Contents;
  struct Cursor;
  explicit TaskSource(std::shared_ptr<const Contents> contents);

  std::shared_ptr<const Contents> contents_;
  std::int64_t next_document_ = 0;
  std::shared_ptr<Cursor> cursor_;  // null: at the file's start, next_document_ documents to be passed over
};

}  // namespace replayeval::tasks
