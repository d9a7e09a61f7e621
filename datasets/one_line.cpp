#include "datasets/one_line.h"

#include <fmt/format.h>

namespace replayeval::datasets {

std::string one_line(std::string_view text, std::size_t most) {
  std::size_t end = text.size();
  if (end > most)
    for (end = most; end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U;) --end;  // parts no character
  std::string shown;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      shown += "\\n";
    else if (c == '\t')
      shown += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  return end < text.size() ? fmt::format("{}... ({} bytes)", shown, text.size()) : shown;
}

}  // namespace replayeval::datasets
