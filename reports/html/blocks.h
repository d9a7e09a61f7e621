// Blocks of a report as HTML.
#pragma once

#include <string>
#include <vector>

#include "reports/document.h"

namespace replayeval::reports::html {

std::string text_of(const Text& text);
std::string table_of(const Table& table);  // in a box of its own that scrolls
std::string blocks(const Blocks& blocks);

// A section's blocks, cut at its headings.
struct Part {
  std::string title;
  Blocks blocks;
};
std::vector<Part> parts_of(Blocks blocks);  // throws std::invalid_argument where the first block is no heading

std::string folded(const std::string& summary, const std::string& markup);  // opens on a click; "" of ""

}  // namespace replayeval::reports::html
