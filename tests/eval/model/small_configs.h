// Small configurations of several architectures, with widths that are no multiples of 32.
#pragma once

#include <nlohmann/json.hpp>

namespace replayeval::testing {

inline nlohmann::json mamba2_config() {
  return {{"model_type", "mamba2"},
          {"vocab_size", 101},
          {"hidden_size", 44},
          {"expand", 2},
          {"num_heads", 11},
          {"head_dim", 8},
          {"n_groups", 11},
          {"state_size", 24},
          {"num_hidden_layers", 3},
          {"use_bias", true},
          {"architectures", {"Mamba2ForCausalLM"}}};
}

inline nlohmann::json falcon_h1_config() {
  return {{"model_type", "falcon_h1"},
          {"vocab_size", 101},
          {"hidden_size", 44},
          {"intermediate_size", 52},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 12},
          {"max_position_embeddings", 256},
          {"mamba_d_ssm", 48},
          {"mamba_n_heads", 6},
          {"mamba_d_head", 8},
          {"mamba_n_groups", 3},
          {"mamba_d_state", 24},
          {"rope_theta", 1e5},
          {"ssm_multipliers", {0.7, 1.2, 0.6, 1.4, 0.9}},
          {"mlp_multipliers", {0.9, 0.6}},
          {"key_multiplier", 0.4},
          {"ssm_in_multiplier", 1.25},
          {"architectures", {"FalconH1ForCausalLM"}}};
}

inline nlohmann::json zamba2_config() {
  return {{"model_type", "zamba2"},     {"vocab_size", 101},
          {"hidden_size", 44},          {"intermediate_size", 52},
          {"num_hidden_layers", 5},     {"layers_block_type", {"mamba", "hybrid", "hybrid", "mamba", "hybrid"}},
          {"num_attention_heads", 4},   {"max_position_embeddings", 256},
          {"n_mamba_heads", 11},        {"mamba_ngroups", 1},
          {"mamba_d_state", 24},        {"num_mem_blocks", 2},
          {"adapter_rank", 6},          {"use_shared_attention_adapter", true},
          {"use_mem_rope", true},       {"rope_theta", 10000},
          {"time_step_limit", nullptr}, {"architectures", {"Zamba2ForCausalLM"}}};
}

}  // namespace replayeval::testing
