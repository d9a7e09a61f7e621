// What a server does to its sequences, as a list of actions that a model or a mixer can follow: sequences come while
// others are under way, are evicted and come back, rows stand in another order than slots.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/comparator/run_config.h"

namespace replayeval {

// What an output is an example of: how its sequence last came into its slot, and what its call was like.
enum class ChurnKind : std::uint8_t {
  admission,        // a prompt, while others decode
  one_token_chunk,  // a prompt whose last chunk is a single token
  recomputation,    // evicted, then computed anew up to where it was
  restore,          // evicted, then taken from a saved prefix; what came after it is decoded once more
  padded_rows,      // the call had rows of no sequence
  reordered_rows,   // the call's rows stood in another order than their slots
  batch_size        // no event at all: sequences together, against one at a time
};
std::string_view churn_kind_name(ChurnKind kind);

struct ChurnRow {
  std::int32_t slot = -1;  // below 0: padding
  std::int64_t sequence = 0, begin = 0;
  std::int64_t prefilled = 0;  // tokens that were computed apart when the sequence last came in
  ChurnKind came = ChurnKind::admission;
};

struct ChurnAction {
  enum class What : std::uint8_t {
    prefill,  // the row's first `tokens` tokens, computed apart and stored in its slot
    decode,   // `tokens` more of each row
    save,     // the row's slot, into the saved place `place`
    restore,  // back into the row's slot
    leave     // the row leaves its slot with `tokens` tokens, being done or evicted
  };
  What what = What::decode;
  std::int64_t tokens = 0;
  std::int64_t place = 0;
  std::vector<ChurnRow> rows;  // one, but of a decode
};

struct ChurnScript {
  std::int64_t slots = 0;
  std::int64_t places = 0;  // for saved prefixes
  std::int64_t stays = 0;   // how often a sequence came into a slot
  std::vector<ChurnAction> actions;
  std::map<std::string, std::int64_t> events;  // how often something happened
};

// A sequence as its number and the config alone decide it. Every third prompt ends in a chunk of one token.
struct ChurnSequence {
  std::int64_t prompt = 0, length = 0;  // tokens
};
ChurnSequence churn_sequence(const WorkloadConfig& workload, std::int64_t number);

// How many sequences go through `slots` slots.
std::int64_t churn_sequences(const ChurnConfig& config, std::int64_t slots);

// The same config and slots give the same script, on every platform. Throws ConfigError where a scripted event names a
// sequence that is not under way at its step.
ChurnScript make_churn_script(const WorkloadConfig& workload, std::int64_t slots);

// The same sequences in batches of `slots`, each from its prompt to its end without anything in between: the first
// `sequences` of them.
ChurnScript make_calm_script(const WorkloadConfig& workload, std::int64_t slots, std::int64_t sequences);

}  // namespace replayeval
