// The rotary positions that a config.json asks for, in the old spelling (rope_scaling, rope_theta) and the new one
// (rope_parameters). Facts: transformers' modeling_rope_utils.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/model/config_reader.h"

namespace replayeval {

enum class RotaryKind : std::uint8_t { standard, linear, dynamic, yarn, longrope, llama3 };

struct RotaryConfig {
  RotaryKind kind = RotaryKind::standard;
  double theta = 10000.0;
  std::int64_t rotary_dim = 0;                           // elements of a head that turn, the first ones; even
  std::int64_t max_positions = 0;                        // max_position_embeddings: where dynamic begins to stretch
  std::int64_t original_max_positions = 0;               // yarn, longrope, llama3: before the extension
  double factor = 1.0;                                   // of the extension; all kinds but standard
  double attention_factor = 1.0;                         // on cosines and sines: yarn, longrope
  double beta_fast = 32.0, beta_slow = 1.0;              // yarn, in turns over original_max_positions
  bool truncate = true;                                  // yarn: the ramp between them begins and ends at integers
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  std::vector<double> short_factor, long_factor;         // longrope, [rotary_dim / 2] each
};

// What differs between the architectures that read these keys.
struct RotaryRules {
  std::int64_t head_dim = 0, max_positions = 0;
  double partial = 1.0;           // share of a head that turns where config.json does not say
  bool top_level_partial = true;  // a partial_rotary_factor beside the rope parameters counts
  // The published code turns whole heads: the standard kind ignores partial_rotary_factor, no other kind can have one.
  bool whole_heads = false;
  std::vector<std::string> ignored;  // keys of the rope parameters that do nothing there
};

// Throws CheckpointError naming file, key and expectation; accounts for every key that it looks at.
RotaryConfig read_rotary(ConfigReader& reader, const RotaryRules& rules);

}  // namespace replayeval
