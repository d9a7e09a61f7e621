// `replayeval bench kernels`: time of a layer's decode step. `replayeval bench model CONFIG`: whole-model decode speed
// of all arms of a run config.
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

void add_bench_command(CLI::App& app);

}  // namespace replayeval
