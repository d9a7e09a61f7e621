// Python literals as samples hold them: the str() of a document's target, which may be a list.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/tasks/python_json.h"

namespace replayeval::tasks {

// The elements of a list (or tuple) of strings, numbers, True, False and None, written as repr() does. Nothing if
// `text` is anything else.
std::optional<std::vector<OrderedJson>> parse_python_list(std::string_view text);

// str(value) of what JSON holds: a string as it is, a list "['a', 'b']", True, None.
std::string python_str(const OrderedJson& value);

}  // namespace replayeval::tasks
