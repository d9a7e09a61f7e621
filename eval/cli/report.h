// replayeval report RESULT… : the reports of one or several results, made again from their results.json.
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

// Registers the subcommand; its callback does the work and throws on errors.
void add_report_command(CLI::App& app);

}  // namespace replayeval
