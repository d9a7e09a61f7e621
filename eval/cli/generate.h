// replayeval generate CHECKPOINT : continues a prompt under one arm, or under several side by side.
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

// Registers the subcommand; its callback does the work and throws on errors.
void add_generate_command(CLI::App& app);

}  // namespace replayeval
