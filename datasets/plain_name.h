// Names that people give, which become parts of file names and of tables.
#pragma once

#include <algorithm>
#include <string_view>

namespace replayeval::datasets {

inline constexpr const char* plain_name_rule =
    "a name of at most 64 letters, digits, '.', '_' and '-' that does not start with '.'";

inline bool is_plain_name(std::string_view name) {
  constexpr std::size_t longest = 64;  // file systems cut names at 255 bytes
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.front() != '.' && name.size() <= longest &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace replayeval::datasets
