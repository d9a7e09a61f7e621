// replayeval run CONFIG.yaml
#pragma once

#include <stdexcept>

namespace CLI {
class App;
}

namespace replayeval {

// Results are complete and printed, but something in them that must hold does not.
class BrokenChecks : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void add_run_command(CLI::App& app);

}  // namespace replayeval
