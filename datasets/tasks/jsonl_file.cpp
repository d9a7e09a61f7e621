#include "datasets/tasks/jsonl_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "datasets/error.h"
#include "datasets/gzip.h"
#include "datasets/regular_file.h"

namespace replayeval::tasks {

JsonlFile::JsonlFile(const std::filesystem::path& file) : file_(file) {
  datasets::require_regular_file(file);
  stream_.open(file, std::ios::binary);
  if (!stream_) throw datasets::DataError(fmt::format("{}: cannot be opened: {}", file.string(), std::strerror(errno)));
  std::string begin(3, '\0');
  stream_.read(begin.data(), 3);
  if (datasets::is_gzip(begin))
    throw datasets::DataError(file.string() + ": is compressed (gzip); expected JSON lines");
  rewind();
}

bool JsonlFile::next(std::string& line) {
  while (std::getline(stream_, line)) {
    ++number_;
    if (line.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
  if (stream_.bad()) throw datasets::DataError(file_.string() + ": cannot be read");
  return false;
}

std::string JsonlFile::place() const { return fmt::format("{}: line {}", file_.string(), number_); }

void JsonlFile::rewind() {
  stream_.clear();
  stream_.seekg(0);
  number_ = 0;
}

}  // namespace replayeval::tasks
