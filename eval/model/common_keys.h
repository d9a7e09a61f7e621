// Keys of config.json that many architectures share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "eval/model/architecture.h"
#include "eval/model/config_reader.h"

namespace replayeval {

// Marks as ignored what changes nothing in a forward pass: bookkeeping, initialisation, training, generation, and what
// outputs are asked for.
void ignore_common_keys(ConfigReader& reader);

// The last word of every reader: refuses the keys that nobody accounted for (ConfigReader::finish) and writes the
// account of the others into the architecture.
void finish_keys(ConfigReader& reader, Architecture& architecture);

// Throw CheckpointError on an infinite number, and on an epsilon outside 0 to 1.
double read_finite(ConfigReader& reader, const std::string& key, double fallback);
double read_norm_eps(ConfigReader& reader, const std::string& key, double fallback);

// num_attention_heads and num_key_value_heads. Throws CheckpointError unless the former is a multiple of the latter.
struct HeadDefaults {
  std::optional<std::int64_t> num_heads;     // must be there if absent
  std::optional<std::int64_t> num_kv_heads;  // as many as heads if absent
};
void read_attention_heads(ConfigReader& reader, Architecture& architecture, const HeadDefaults& defaults = {});

// Those and head_dim, hidden_size / num_attention_heads if missing.
void read_attention_sizes(ConfigReader& reader, Architecture& architecture);

}  // namespace replayeval
