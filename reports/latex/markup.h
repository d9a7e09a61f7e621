// Text and tables of a report as LaTeX.
#pragma once

#include <string>

#include "reports/document.h"

namespace replayeval::reports::latex {

std::string escaped(const std::string& text);  // as it stands in a paragraph; numbers like 1.2e-06 as powers of ten
std::string text_of(const Text& text);

struct PaperTable {
  std::string name;     // of its files, and of its label: tab:NAME
  std::string caption;  // a sentence or more: what was compared, over how much
  Table table;
};

// A booktabs table for \input into a document with the packages booktabs and graphicx: over one column of the page, or
// over both where its lines have more than `one_column` characters; scaled down where it is still too wide.
std::string fragment(const PaperTable& table);
std::string csv(const Table& table);  // RFC 4180, the same text as in the other forms

inline constexpr std::size_t one_column = 60;

}  // namespace replayeval::reports::latex
