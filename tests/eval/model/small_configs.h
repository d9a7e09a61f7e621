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

inline nlohmann::json olmo_hybrid_config() {
  return {{"model_type", "olmo_hybrid"},
          {"vocab_size", 101},
          {"hidden_size", 60},
          {"intermediate_size", 52},
          {"num_hidden_layers", 4},
          {"layer_types", {"linear_attention", "full_attention", "linear_attention", "full_attention"}},
          {"num_attention_heads", 5},
          {"num_key_value_heads", 5},
          {"max_position_embeddings", 256},
          {"linear_num_key_heads", 3},
          {"linear_num_value_heads", 3},
          {"linear_key_head_dim", 24},
          {"linear_value_head_dim", 48},
          {"linear_conv_kernel_dim", 4},
          {"linear_allow_neg_eigval", true},
          {"hidden_act", "silu"},
          {"rms_norm_eps", 1e-6},
          {"rope_parameters", {{"rope_theta", nullptr}, {"rope_type", "default"}}},
          {"architectures", {"OlmoHybridForCausalLM"}}};
}

inline nlohmann::json kimi_linear_config() {
  return {{"model_type", "kimi_linear"},
          {"vocab_size", 101},
          {"hidden_size", 44},
          {"intermediate_size", 52},
          {"num_hidden_layers", 3},
          {"linear_attn_config",
           {{"kda_layers", {1, 3}},
            {"full_attn_layers", {2}},
            {"num_heads", 3},
            {"head_dim", 24},
            {"short_conv_kernel_size", 4}}},
          {"num_attention_heads", 3},
          {"num_key_value_heads", 3},
          {"q_lora_rank", nullptr},
          {"kv_lora_rank", 20},
          {"qk_nope_head_dim", 12},
          {"qk_rope_head_dim", 6},
          {"v_head_dim", 14},
          {"mla_use_nope", true},
          {"num_experts", 6},
          {"num_experts_per_token", 2},
          {"num_expert_group", 3},
          {"topk_group", 2},
          {"moe_renormalize", true},
          {"moe_router_activation_func", "sigmoid"},
          {"moe_intermediate_size", 28},
          {"num_shared_experts", 2},
          {"routed_scaling_factor", 2.446},
          {"first_k_dense_replace", 1},
          {"moe_layer_freq", 1},
          {"use_grouped_topk", true},
          {"model_max_length", 256},
          {"hidden_act", "silu"},
          {"rms_norm_eps", 1e-5},
          {"head_dim", 72},
          {"rope_theta", 10000.0},
          {"rope_scaling", nullptr},
          {"num_nextn_predict_layers", 0},
          {"tie_word_embeddings", false},
          {"architectures", {"KimiLinearForCausalLM"}}};
}

// Experts in every second layer, an MLP in the others.
inline nlohmann::json qwen3_next_config() {
  return {{"model_type", "qwen3_next"},
          {"vocab_size", 101},
          {"hidden_size", 44},
          {"intermediate_size", 52},
          {"num_hidden_layers", 4},
          {"full_attention_interval", 3},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 12},
          {"partial_rotary_factor", 0.5},
          {"rope_theta", 1e5},
          {"max_position_embeddings", 256},
          {"linear_num_key_heads", 2},
          {"linear_num_value_heads", 6},
          {"linear_key_head_dim", 24},
          {"linear_value_head_dim", 40},
          {"linear_conv_kernel_dim", 3},
          {"decoder_sparse_step", 2},
          {"mlp_only_layers", nlohmann::json::array()},
          {"num_experts", 5},
          {"num_experts_per_tok", 2},
          {"moe_intermediate_size", 20},
          {"shared_expert_intermediate_size", 28},
          {"architectures", {"Qwen3NextForCausalLM"}}};
}

// A language model alone, dense.
inline nlohmann::json qwen3_5_config() {
  return {{"model_type", "qwen3_5_text"},
          {"vocab_size", 101},
          {"hidden_size", 44},
          {"intermediate_size", 52},
          {"num_hidden_layers", 3},
          {"layer_types", {"linear_attention", "full_attention", "linear_attention"}},
          {"full_attention_interval", 4},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 1},
          {"head_dim", 16},
          {"attn_output_gate", true},
          {"rope_parameters",
           {{"rope_type", "default"},
            {"rope_theta", 1e4},
            {"partial_rotary_factor", 0.25},
            {"mrope_section", {1, 1, 0}},
            {"mrope_interleaved", true}}},
          {"partial_rotary_factor", 0.25},
          {"max_position_embeddings", 256},
          {"linear_num_key_heads", 3},
          {"linear_num_value_heads", 3},
          {"linear_key_head_dim", 16},
          {"linear_value_head_dim", 8},
          {"mamba_ssm_dtype", "float32"},
          {"mtp_num_hidden_layers", 1},
          {"dtype", "bfloat16"}};
}

// Wrapped with an image encoder, experts in every layer.
inline nlohmann::json qwen3_5_moe_config() {
  nlohmann::json text = qwen3_5_config();
  text.erase("intermediate_size");
  text["model_type"] = "qwen3_5_moe_text";
  text.update({{"num_experts", 4},
               {"num_experts_per_tok", 3},
               {"moe_intermediate_size", 20},
               {"shared_expert_intermediate_size", 28},
               {"linear_num_value_heads", 6}});
  return {{"model_type", "qwen3_5_moe"},     {"text_config", text},
          {"vision_config", {{"depth", 2}}}, {"image_token_id", 100},
          {"tie_word_embeddings", true},     {"architectures", {"Qwen3_5MoeForConditionalGeneration"}}};
}

}  // namespace replayeval::testing
