// What the Qwen hybrids (qwen3_next, qwen3_5, qwen3_5_moe) have in common in config.json.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/model/architecture.h"
#include "eval/model/config_reader.h"
#include "eval/model/rotary_config.h"

namespace replayeval {

struct QwenHybridConfig {
  Architecture architecture;   // mixture.experts is 0 where no layer has experts
  std::vector<bool> mixtures;  // of each layer: experts behind the mixer, else an MLP
  bool renormalise = true;     // the router's weights
  RotaryConfig rotary;         // of models with attention
  bool attention_bias = false;
  bool tie_word_embeddings = false;
  double norm_eps = 1e-6;
};

// The published code's defaults where they differ between the types.
struct QwenHybridDefaults {
  std::int64_t vocab_size = 0, hidden_size = 0, layers = 0, num_kv_heads = 0;
  std::int64_t experts = 0, experts_per_token = 0;  // of types with experts
};

// All but the feed-forward parts. layer_types, or every full_attention_interval-th layer an attention layer. Throws
// CheckpointError naming file, key and expectation.
void read_qwen_hybrid(ConfigReader& reader, const QwenHybridDefaults& defaults, QwenHybridConfig& config);

// The sizes of the experts, where config.mixtures has any; else they are ignored, as is intermediate_size where all
// layers have experts.
void read_qwen_feed_forward(ConfigReader& reader, const QwenHybridDefaults& defaults, std::int64_t intermediate_size,
                            QwenHybridConfig& config);

}  // namespace replayeval
