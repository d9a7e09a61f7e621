// JSON as Python's json module reads and writes it: NaN and Infinity may stand as bare words, members keep their order.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

#include "datasets/error.h"

namespace replayeval::tasks {

using OrderedJson = nlohmann::ordered_json;

// json.loads. Throws DataError "PLACE: byte N: ..." (from 1) where `text` is not JSON or no UTF-8; a number beyond a
// double's range is refused, too, and a key that an object has twice.
OrderedJson read_python_json(std::string_view text, const std::string& place);

// A line that is an object. Throws DataError, `place` first.
OrderedJson read_json_row(std::string_view line, const std::string& place);

// json.dumps(value, ensure_ascii=False), with indent=`indent` where it is >= 0.
std::string write_python_json(const OrderedJson& value, int indent = -1);

}  // namespace replayeval::tasks
