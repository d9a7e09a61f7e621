// What a row of the harness's must hold together by.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "datasets/tasks/task_document.h"

namespace replayeval::tasks {

// The count beside a log-likelihood that the row states for one of the metrics; else `own`, the text's. They differ
// where a task counts in a text of which it shows the model another form (detokenized, say), by a few: DataError,
// `place` first, on a count that is neither half nor twice of it.
std::int64_t recorded_count(const OrderedJson& row, std::initializer_list<const char*> metrics, std::int64_t own,
                            const std::string& place);

// Of acc_mutual_info: the second half of the requests is the first one's continuations without context, with or without
// the delimiter. Throws DataError, `place` first.
void check_unconditional(const std::vector<TextPair>& requests, const std::string& delimiter, const std::string& place);

}  // namespace replayeval::tasks
