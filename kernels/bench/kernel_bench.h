// Time of one decode step of a layer, exact against replay, replay over whole ring cycles with their flush; outputs are
// checked in the same run.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace CLI {
class App;
}

namespace replayeval::bench {

// An object whose members the JSON file gets beside its figures: what timed them, when and where (on a GPU or not).
using Provenance = std::function<nlohmann::json(bool on_gpu)>;

// Gives a command the bench's options and what it does: prints a table, writes JSON where asked. Throws
// std::runtime_error without a GPU, memory or right outputs.
void add_kernel_bench(CLI::App& command, Provenance provenance = {});

}  // namespace replayeval::bench
