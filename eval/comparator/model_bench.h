// Decode speed of a whole model, arm by arm: one token a sequence and call, as a server runs it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

struct ModelBenchOptions {
  std::vector<std::int64_t> batches = {1, 8, 32, 128, 256, 512};
  std::int64_t rounds = 5;                // timed rounds of each arm; the arms take turns
  std::int64_t context = 0;               // random tokens that every sequence holds before the first timed step
  std::uint64_t seed = 0;                 // of those tokens
  std::vector<std::string> stacked = {};  // arms that also decode together, stacked in one step; none or two
  double read_bandwidth = 0.0;            // bytes a second that the device reads at most, for predictions; 0: none
};

struct Spread {  // of the rounds' means, seconds a step
  double median = 0.0, low = 0.0, high = 0.0;
};

struct DecodeSpeed {
  std::string arm;                   // "A + B": stacked
  std::vector<std::string> arms;     // of one step
  std::int64_t batch = 0;            // sequences of each arm
  std::int64_t steps_per_round = 0;  // a whole number of ring cycles, flushes included
  Spread step_seconds;
  double tokens_per_second = 0.0;  // batch * arms / median
  // What arms differ in, of a step: convolution, recurrence and gated norm, by arm, timed in a round of its own.
  std::map<std::string, double> mixer_seconds;
  double mixer_share = 0.0;  // of that round
  // What that is made of, by arm and kernel, of a round of its own in graphs: its events add microseconds a layer.
  std::map<std::string, std::map<std::string, double>> mixer_parts;
  double predicted_seconds = 0.0;  // the bytes of footprint.h's step_bytes() over the read bandwidth; 0: not predicted
  std::int64_t cache_bytes = 0;    // of all sequences: states and rings
  std::int64_t device_bytes = 0;   // peak in tensors of the arms that took turns, weights included; 0 on the CPU
  std::int64_t turns = 0;          // how many took turns, this one included: as many as fit into memory together
  std::string graph_obstacle;      // why steps were not replayed as CUDA graphs; "" if they were
  std::string not_run;             // why there are no figures: memory; "" if there are
};

// Throws std::invalid_argument on no batch, a batch or rounds below 1, a context below 0, more tokens a sequence
// than `max_positions`, or stacked arms that are not two of `arms`: what bench_model() refuses, before a model is
// loaded.
void check_model_bench(const std::vector<Arm>& arms, const ModelBenchOptions& options, std::int64_t max_positions);

// Every arm decodes greedily on its own from the same tokens: forward, logits and the choice of the next token are in
// the step. Steps a round: the arms' buffer lengths' least common multiple, and no fewer than 16. `progress` is told
// each row as it is done. `architecture`: the model's. Throws as check_model_bench().
std::vector<DecodeSpeed> bench_model(const Model& model, const Architecture& architecture, const std::vector<Arm>& arms,
                                     const ModelBenchOptions& options,
                                     const std::function<void(const DecodeSpeed&)>& progress);

// Two arms stacked in one step against each alone.
struct StackedSpeed {
  std::int64_t batch = 0;
  std::string slower;         // of the two, alone
  double stacked = 0.0;       // seconds a step, medians all
  double slower_alone = 0.0;  //
  double mixers_of_other = 0.0;
};
std::vector<StackedSpeed> stacked_speeds(const std::vector<DecodeSpeed>& rows);

}  // namespace replayeval
