// Text and tables of a report as LaTeX.
#pragma once

#include <optional>
#include <string>

#include "reports/document.h"

namespace replayeval::reports::latex {

// As it stands in a paragraph; numbers like 1.2e-06 as powers of ten. Long words may break behind hyphens, underscores,
// slashes and dots, and where they have none of these, anywhere.
std::string escaped(const std::string& text);
std::string text_of(const Text& text);

struct PaperTable {
  std::string name;               // of its files, and of its label: tab:NAME
  std::string caption;            // a sentence or more: what was compared, over how much
  Table table;                    // as the paper shows it
  std::optional<Table> all = {};  // what the Markdown and CSV twins hold, where the paper shows a selection

  const Table& twin() const { return all ? *all : table; }
};

// A booktabs table for \input into a document with the packages booktabs and graphicx: over one column of the page, or
// over both where its lines have more than `one_column` characters; scaled down where it is still too wide. First
// columns of more than `widest_name` characters break their lines; what has more than `most_lines` lines goes on in a
// second table of the same number.
std::string fragment(const PaperTable& table);
std::string csv(const Table& table);  // RFC 4180, the same text as in the other forms

inline constexpr std::size_t one_column = 60, widest_name = 28, most_lines = 40;

}  // namespace replayeval::reports::latex
