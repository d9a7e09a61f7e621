// replayeval gate RESULT --policy P.yaml: results held against a policy, for CI.
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

// What a gate ends with that lets no change through; the exit code is the gate's (reports/gate/gate.h).
struct GateClosed {
  int exit_code = 3;
};

// Registers the subcommand; its callback does the work, throws on errors, and throws GateClosed after having said why.
void add_gate_command(CLI::App& app);

}  // namespace replayeval
