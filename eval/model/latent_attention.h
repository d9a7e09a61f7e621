// Multi-head latent attention without positions (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1, less the rotation):
// keys and values come out of one narrow vector a token, but for a part of the key that all heads share.
//
//   q = q_proj x, or q_b_proj norm(q_a_proj x)
//   c | r = kv_a_proj x;  (k_h | v_h) for each head h = kv_b_proj norm(c);  key of head h: k_h | r
//
// The cache holds keys and values of every head, as attention reads them.
#pragma once

#include <memory>
#include <string>

#include "eval/model/blocks.h"
#include "eval/model/hybrid_builder.h"
#include "eval/model/latent_attention_form.h"

namespace replayeval {

struct LatentAttentionWeights {
  Linear q_proj;     // from x or, with a bottleneck, from it: [num_heads * key_dim, ..]
  Linear q_a_proj;   // into the queries' bottleneck; or undefined
  Norm q_a_norm;     // of it
  Linear kv_a_proj;  // to c | r: [kv_rank + shared_key_dim, hidden]
  Norm kv_a_norm;    // of c
  Linear kv_b_proj;  // [num_heads * (own_key_dim + value_dim), kv_rank]
  Linear o_proj;     // [hidden, num_heads * value_dim]
};

class LatentAttentionBlock : public Block {
 public:
  // `index` counts the model's attention caches from 0.
  LatentAttentionBlock(LatentAttentionWeights weights, const LatentAttentionForm& form, std::size_t index)
      : weights_(std::move(weights)), form_(form), index_(index) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  at::Tensor queries(const at::Tensor& x, const Step& step) const;

  LatentAttentionWeights weights_;
  LatentAttentionForm form_;
  std::size_t index_;
};

// Tensors under `name.`: q_proj or q_a_proj, q_a_layernorm and q_b_proj; kv_a_proj_with_mqa, kv_a_layernorm, kv_b_proj,
// o_proj. The eps is that of the norms inside.
std::unique_ptr<Block> load_latent_attention(HybridBuilder& builder, const std::string& name,
                                             const LatentAttentionForm& form, double eps);

}  // namespace replayeval
