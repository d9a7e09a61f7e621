// Time of the convolution or the gated norm of a layer; outputs are checked in the same run.
#pragma once

#include "kernels/bench/mixer_part.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace replayeval::bench {

struct MixerPartOptions {
  std::string part;  // "conv" or "gated_norm"
  MixerWidths widths;
  std::vector<std::int64_t> batches;
  std::int64_t tokens = 1;  // of each sequence
  int repeats = 10;
};

// Prints a table against `read_bandwidth`, bytes a second; the same as JSON. Throws std::runtime_error on wrong
// outputs.
nlohmann::json bench_mixer_part(BenchDevice& device, double read_bandwidth, const MixerPartOptions& options);

}  // namespace replayeval::bench
