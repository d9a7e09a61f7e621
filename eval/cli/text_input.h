// Text that a command is handed.
#pragma once

#include <string>

namespace replayeval {

// All of standard input. Throws DataError if it cannot be read.
std::string read_standard_input();

// Throws DataError, `place` first, on no text and on what is not UTF-8.
void require_text(const std::string& text, const std::string& place);

}  // namespace replayeval
