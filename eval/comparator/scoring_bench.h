// Speed of teacher-forced scoring, as a perplexity workload does it, and what its time goes to.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "eval/comparator/perplexity.h"

namespace replayeval {

struct ScoringBenchOptions {
  std::int64_t context = 2048;  // tokens of a sequence, random ones, all scored
  std::int64_t sequences = 0;   // at once; 0: as many as a workload with `batch: auto` takes
  std::int64_t block = 256;     // tokens per call
  std::uint64_t seed = 0;       // of the tokens
};

struct ScoringSpeed {
  std::int64_t context = 0, sequences = 0, block = 0;
  double seconds = 0.0;                 // wall clock of one pass, the second of two
  double tokens_per_second = 0.0;       // tokens of the text; every arm scores each of them
  std::map<std::string, double> share;  // of `seconds`: "products" (dense layers, experts and head), "mixers" (of all
                                        // arms), then other work by its name, "metrics" among it; "rest": none of these
  std::map<std::string, std::map<std::string, double>> mixers;  // the same of each arm's mixers, by kernel
};

// Throws std::invalid_argument on a context outside 1 .. max_positions, sequences below 0, or a block below 1: what
// bench_scoring() refuses, before a model is loaded.
void check_scoring_bench(const ScoringBenchOptions& options, std::int64_t max_positions);

ScoringSpeed bench_scoring(const RunContext& context, const ScoringBenchOptions& options);

}  // namespace replayeval
