// Blocks of a report as Markdown (GitHub flavour).
#pragma once

#include <string>

#include "reports/document.h"

namespace replayeval::reports::markdown {

std::string text_of(const Text& text);     // one line; what would be markup or end a table's cell is escaped
std::string blocks(const Blocks& blocks);  // parted by empty lines, ends with a newline; "" of none

}  // namespace replayeval::reports::markdown
