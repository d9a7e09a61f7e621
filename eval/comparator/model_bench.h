// Decode speed of a whole model, arm by arm: one token a sequence and call, as a server runs it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/model/model.h"

namespace replayeval {

struct ModelBenchOptions {
  std::vector<std::int64_t> batches = {1, 32, 256};
  std::int64_t rounds = 5;   // timed rounds of each arm; the arms take turns
  std::int64_t context = 0;  // random tokens that every sequence holds before the first timed step
  std::uint64_t seed = 0;    // of those tokens
};

struct Spread {  // of the rounds' means, seconds a step
  double median = 0.0, low = 0.0, high = 0.0;
};

struct DecodeSpeed {
  std::string arm;
  std::int64_t batch = 0;
  std::int64_t steps_per_round = 0;  // a whole number of ring cycles, flushes included
  Spread step_seconds;
  double tokens_per_second = 0.0;  // batch / median
  double mixer_share = 0.0;        // of a step: convolution, recurrence and gated norm; timed in a round of its own
  std::int64_t cache_bytes = 0;    // of all sequences: states and rings
  std::int64_t device_bytes = 0;   // peak in tensors at this batch, weights and all arms' caches included; 0 on the CPU
};

// Throws std::invalid_argument on no batch, a batch or rounds below 1, a context below 0, or more tokens a sequence
// than `max_positions`: what bench_model() refuses, before a model is loaded.
void check_model_bench(const std::vector<Arm>& arms, const ModelBenchOptions& options, std::int64_t max_positions);

// Every arm decodes greedily on its own from the same tokens: forward, logits and the choice of the next token are in
// the step. Steps a round: the arms' buffer lengths' least common multiple, and no fewer than 16. `progress` is told
// each row as it is done. Throws as check_model_bench().
std::vector<DecodeSpeed> bench_model(const Model& model, const std::vector<Arm>& arms, const ModelBenchOptions& options,
                                     const std::function<void(const DecodeSpeed&)>& progress);

}  // namespace replayeval
