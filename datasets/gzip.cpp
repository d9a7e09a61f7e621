#include "datasets/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "datasets/error.h"

namespace replayeval::datasets {
namespace {

class Inflater {
 public:
  Inflater() {
    constexpr int gzip_only = 16;  // added to the window bits: a gzip header and trailer, checked
    if (inflateInit2(&stream_, MAX_WBITS + gzip_only) != Z_OK) {
      throw std::runtime_error("zlib cannot be set up");
    }
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Appends one member's text, returns how many bytes of `bytes` it took.
  std::size_t member(std::string_view bytes, std::size_t begin, const std::string& place, std::string* text) {
    inflateReset(&stream_);
    std::vector<Bytef> buffer(1 << 18);
    std::size_t given = 0;
    const std::string_view rest = bytes.substr(begin);
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      if (stream_.avail_in == 0 || given == 0) {
        const std::size_t count =
            std::min<std::size_t>(rest.size() - given, std::numeric_limits<uInt>::max());  // zlib counts in uInt
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data() + given));
        stream_.avail_in = static_cast<uInt>(count);
        given += count;
      }
      stream_.next_out = buffer.data();
      stream_.avail_out = static_cast<uInt>(buffer.size());
      status = inflate(&stream_, Z_NO_FLUSH);
      text->append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream_.avail_out);
      const std::size_t used = given - stream_.avail_in;
      if (status == Z_BUF_ERROR) {  // zlib wants more, and there is no more
        throw DataError(
            fmt::format("{}: truncated gzip: ends at byte {} inside a compressed member", place, bytes.size()));
      }
      if (status != Z_OK && status != Z_STREAM_END) {
        throw DataError(fmt::format("{}: damaged gzip near byte {}: {}", place, begin + used,
                                    stream_.msg != nullptr ? stream_.msg : "zlib gives no reason"));
      }
    }
    return given - stream_.avail_in;
  }

 private:
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b\x08"); }

std::string decompress_gzip(std::string_view bytes, const std::string& place) {
  Inflater inflater;
  std::string text;
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (at > 0 && !is_gzip(bytes.substr(at))) {
      throw DataError(fmt::format("{}: byte {} begins what is not gzip; expected the end of the file or another member",
                                  place, at));
    }
    at += inflater.member(bytes, at, place, &text);
  }
  return text;
}

}  // namespace replayeval::datasets
