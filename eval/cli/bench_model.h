// `replayeval bench model`.
#pragma once

namespace CLI {
class App;
}

namespace replayeval {

void add_model_bench(CLI::App& command);

}  // namespace replayeval
