// replayeval run CONFIG.yaml
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

void add_run_command(CLI::App& app);

}  // namespace replayeval
