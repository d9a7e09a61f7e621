// Rows of plain JSONL tasks, for people without the harness.
//
//   multiple_choice        {"context": TEXT, "choices": [TEXT, ...], "answer": NUMBER | TEXT | [NUMBER, ...]}
//   loglikelihood          {"context": TEXT, "target": TEXT}
//   loglikelihood_rolling  {"text": TEXT}
//   generate_until         {"context": TEXT, "target": TEXT | [TEXT, ...], "until"?: ..., "max_gen_toks"?: ...}
//
// "answer" and "target" are two names of one member; where "gold" or "label" names a choice, it must be a right one.
// Choices are two or more different texts. A choice is scored behind the target delimiter (a space), a target
// as it is. The type is what the settings say, else what the first row's members say: choices, text, until or
// max_gen_toks, in this order, else loglikelihood.
#pragma once

#include <string>

#include "datasets/tasks/task_document.h"
#include "datasets/tasks/task_settings.h"

namespace replayeval::tasks {

class PlainTaskReader {
 public:
  explicit PlainTaskReader(TaskSettings settings) : settings_(std::move(settings)) {}

  // `number` counts documents from 0 and becomes their id. Throws DataError naming key and expectation.
  TaskDocument read(const OrderedJson& row, std::int64_t number, std::int64_t line, const std::string& place);
  const TaskSettings& settings() const { return settings_; }

 private:
  void read_choices(const OrderedJson& row, const std::string& place, TaskDocument& document) const;
  void read_generation(const OrderedJson& row, const std::string& place, TaskDocument& document) const;

  TaskSettings settings_;
};

// The three hashes of a document as the harness makes them, from its doc, first request and target.
void add_hashes(TaskDocument& document);

}  // namespace replayeval::tasks
