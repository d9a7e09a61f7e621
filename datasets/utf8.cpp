#include "datasets/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

namespace replayeval::datasets {

std::optional<Utf8Fault> find_utf8_fault(std::string_view bytes) {
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  const auto size = static_cast<utf8proc_ssize_t>(bytes.size());
  utf8proc_ssize_t at = 0;
  while (at < size) {
    if (data[at] < 0x80) {  // most of English text: worth not a call
      ++at;
      continue;
    }
    utf8proc_int32_t code_point = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(data + at, size - at, &code_point);
    if (length <= 0) {
      Utf8Fault fault{.offset = at, .found = ""};
      for (utf8proc_ssize_t i = at; i < std::min(at + 4, size); ++i) {
        fault.found += fmt::format("{}{:02x}", i == at ? "" : " ", data[i]);
      }
      return fault;
    }
    at += length;
  }
  return std::nullopt;
}

}  // namespace replayeval::datasets
