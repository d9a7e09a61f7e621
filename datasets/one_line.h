// Text of others within a message.
#pragma once

#include <string>
#include <string_view>

namespace replayeval::datasets {

// As it can stand in a message of one line: control characters as \n, \t or \x1b, and what is beyond `most` bytes cut
// off and said: "abc... (100000 bytes)".
std::string one_line(std::string_view text, std::size_t most = 60);

}  // namespace replayeval::datasets
