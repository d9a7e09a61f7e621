// Ctrl-C as a request: work stops at the next shard boundary and leaves a result folder that can be resumed.
#pragma once

#include <stdexcept>

namespace replayeval {

class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void install_interrupt_handler();  // SIGINT and SIGTERM; a second signal ends the program at once
bool interrupt_requested();

}  // namespace replayeval
