// The keyword arguments of a generation request (gen_kwargs).
#pragma once

#include <string>

#include "datasets/tasks/task_document.h"

namespace replayeval::tasks {

// As the harness's normalize_gen_kwargs: `until` is a string or a list; the first of max_gen_toks, max_new_tokens,
// max_tokens and max_completion_tokens counts, without any 256; a temperature above 0 without do_sample samples,
// do_sample: false makes it 0. Throws DataError naming the key.
GenerationOptions parse_generation(const OrderedJson& kwargs, const std::string& place);

}  // namespace replayeval::tasks
