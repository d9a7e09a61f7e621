// Ctrl-C as a request: work stops at the next place that asks and leaves a result folder that can be resumed.
#pragma once

#include <stdexcept>

namespace replayeval {

class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void install_interrupt_handler();  // SIGINT and SIGTERM; a second signal ends the program at once
bool interrupt_requested();
void stop_if_asked();  // throws Interrupted where one was requested

}  // namespace replayeval
