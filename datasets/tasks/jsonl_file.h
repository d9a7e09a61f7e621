// Lines of a JSONL file, one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace replayeval::tasks {

// Lines end at \n alone: JSON text may hold U+2028, U+0085 and other characters that some readers split at.
class JsonlFile {
 public:
  // Throws DataError naming the file if it cannot be opened or is none that can be read twice (regular_file.h).
  explicit JsonlFile(const std::filesystem::path& file);

  // The next line that is not blank; false at the end. Throws DataError if reading fails.
  bool next(std::string& line);
  std::int64_t line_number() const { return number_; }  // of the line returned last, from 1
  std::string place() const;                            // "FILE: line N"
  void rewind();

 private:
  std::filesystem::path file_;
  std::ifstream stream_;
  std::int64_t number_ = 0;
};

}  // namespace replayeval::tasks
