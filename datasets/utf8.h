// Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace replayeval::datasets {

struct Utf8Fault {
  std::int64_t offset = 0;  // of the first byte that does not begin a well-formed sequence
  std::string found;        // that byte (and the ones after it that matter) in hexadecimal
};

// The first fault, or nothing if all of `bytes` is UTF-8.
std::optional<Utf8Fault> find_utf8_fault(std::string_view bytes);

}  // namespace replayeval::datasets
