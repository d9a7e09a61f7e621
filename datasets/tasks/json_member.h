// Members of a parsed row, with complaints that name the place: "FILE: line 3: doc_id: found ..., expected ...".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "datasets/tasks/python_json.h"

namespace replayeval::tasks {

[[noreturn]] void refuse(const OrderedJson& value, const std::string& place, std::string_view expected);

// nullptr if the key is missing or null. Throws DataError if `object` is none.
const OrderedJson* find_member(const OrderedJson& object, const std::string& key, const std::string& place);
const OrderedJson& member(const OrderedJson& object, const std::string& key, const std::string& place);
const std::string& string_member(const OrderedJson& object, const std::string& key, const std::string& place);

const std::string& as_string(const OrderedJson& value, const std::string& place);
// A string that a message of one line can hold: up to 200 bytes without control characters.
const std::string& as_name(const OrderedJson& value, const std::string& place);
std::int64_t as_integer(const OrderedJson& value, const std::string& place, std::int64_t low, std::int64_t high);
double as_number(const OrderedJson& value, const std::string& place);
bool as_boolean(const OrderedJson& value, const std::string& place);

}  // namespace replayeval::tasks
