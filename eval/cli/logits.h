// replayeval logits CHECKPOINT --ids FILE.json : the full logits of given tokens under one arm, as .npy; the parity
// tool.
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

// Registers the subcommand; its callback does the work and throws on errors.
void add_logits_command(CLI::App& app);

}  // namespace replayeval
