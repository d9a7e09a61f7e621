// Which choices of a multiple-choice document are right, and the texts that their lengths are counted in.
#pragma once

#include <string>
#include <vector>

#include "datasets/tasks/task_document.h"
#include "datasets/tasks/task_settings.h"

namespace replayeval::tasks {

// The list that doc_to_choice gives for `doc`: a list, an object's values, or a member of the document named by it.
// Empty where it is something else (a template, code).
std::vector<std::string> choices_of(const OrderedJson& doc_to_choice, const OrderedJson& doc);

// Of a list of requests without the unconditional ones. Where doc_to_choice does not tell: the continuations without
// the target delimiter, or, if only the contexts differ, these after the last few-shot delimiter that they share.
std::vector<std::string> choice_texts(const std::vector<TextPair>& requests, const TaskSettings& settings,
                                      const OrderedJson& doc);

// One continuation behind several contexts (Winogrande's form).
bool only_contexts_differ(const std::vector<TextPair>& requests);

// Right choices within range. The target is a number, a choice's text or a list of numbers. Where only the contexts
// differ the row does not name it: `settings.gold_key` does, or the row's own acc and responses, if they decide.
// Throws DataError, `place` first, if nothing does, or what does names no choice: at least one is right.
std::vector<std::size_t> right_choices(const OrderedJson& row, const TaskDocument& document,
                                       const TaskSettings& settings, const std::string& place);

}  // namespace replayeval::tasks
