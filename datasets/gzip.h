// gzip (RFC 1952) through zlib.
#pragma once

#include <string>
#include <string_view>

namespace replayeval::datasets {

bool is_gzip(std::string_view bytes);  // by the two magic bytes and the method

// All members one after the other. Throws DataError, `place` first (the file's name): truncated, damaged, or trailing
// bytes that are not gzip.
std::string decompress_gzip(std::string_view bytes, const std::string& place);

}  // namespace replayeval::datasets
