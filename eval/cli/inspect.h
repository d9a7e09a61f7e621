// replayeval inspect CHECKPOINT : architecture, sizes and bytes per sequence of a checkpoint, from its headers alone.
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

// Registers the subcommand; its callback does the work and throws on errors.
void add_inspect_command(CLI::App& app);

}  // namespace replayeval
