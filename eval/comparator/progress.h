// Progress of long work on stderr: a bar on a terminal, a plain line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace replayeval {

class Progress {
 public:
  Progress(std::string title, std::int64_t total, bool quiet);  // total: units of work, such as tokens
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void skip(std::int64_t units);  // that an earlier run has done
  void start();                   // says where work begins; again: nothing
  void add(std::int64_t units);
  // A line of its own that the bar does not overwrite; written in quiet mode, too.
  void note(const std::string& line);
  void finish();

 private:
  void draw(bool final);

  using Clock = std::chrono::steady_clock;
  std::string title_;
  std::int64_t total_, already_ = 0, done_ = 0;
  bool quiet_, terminal_;
  bool started_ = false, finished_ = false;
  Clock::time_point begin_, last_draw_;
};

}  // namespace replayeval
