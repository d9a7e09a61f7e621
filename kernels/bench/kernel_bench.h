// Time of one decode step of a layer, exact against replay, replay over whole ring cycles with their flush; outputs are
// checked in the same run.
#pragma once

namespace CLI {
class App;
}

namespace replayeval::bench {

// Gives a command the bench's options and what it does: prints a table, writes JSON where asked. Throws
// std::runtime_error without a GPU, memory or right outputs.
void add_kernel_bench(CLI::App& command);

}  // namespace replayeval::bench
