#include "eval/cli/text_input.h"

#include <fmt/format.h>

#include <cstdio>

#include "datasets/error.h"
#include "datasets/utf8.h"

namespace replayeval {

std::string read_standard_input() {
  std::string text;
  char buffer[65536];
  while (const std::size_t count = std::fread(buffer, 1, sizeof(buffer), stdin)) text.append(buffer, count);
  if (std::ferror(stdin) != 0) throw datasets::DataError("standard input: cannot be read");
  return text;
}

void require_text(const std::string& text, const std::string& place) {
  if (text.empty()) throw datasets::DataError(place + ": is empty; expected UTF-8 text");
  if (const auto fault = datasets::find_utf8_fault(text))
    throw datasets::DataError(
        fmt::format("{}: byte {}: found {}, expected UTF-8 text", place, fault->offset, fault->found));
}

}  // namespace replayeval
