// replayeval tokenize CHECKPOINT : text to token ids and back, with the checkpoint's own tokenizer.
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

// Registers the subcommand; its callback does the work and throws on errors.
void add_tokenize_command(CLI::App& app);

}  // namespace replayeval
