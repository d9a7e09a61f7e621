#include "datasets/tasks/jsonl_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "datasets/error.h"

namespace replayeval::tasks {

JsonlFile::JsonlFile(const std::filesystem::path& file) : file_(file) {
  if (std::filesystem::is_directory(file))
    throw datasets::DataError(file.string() + ": is a folder; expected a file of JSON lines");
  stream_.open(file, std::ios::binary);
  if (!stream_) throw datasets::DataError(fmt::format("{}: cannot be opened: {}", file.string(), std::strerror(errno)));
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
