#include "eval/model/latent_attention.h"

#include <ATen/ATen.h>

#include <utility>

namespace replayeval {
namespace {

at::Tensor timed_norm(const at::Tensor& x, const Norm& norm, const Step& step) {
  const KernelClock::Scope scope(step.clock, "", "norm");
  return rms_norm(x, norm, x.scalar_type());
}

}  // namespace

at::Tensor LatentAttentionBlock::queries(const at::Tensor& x, const Step& step) const {
  if (!weights_.q_a_proj.weight.defined()) return timed_linear(x, weights_.q_proj, step);
  const at::Tensor narrow = timed_norm(timed_linear(x, weights_.q_a_proj, step), weights_.q_a_norm, step);
  return timed_linear(narrow, weights_.q_proj, step);
}

at::Tensor LatentAttentionBlock::run(const at::Tensor& x, const Step& step) const {
  const std::int64_t arms = x.size(0), rows = x.size(1), heads = form_.num_heads;
  const at::Tensor q = queries(x, step);
  const at::Tensor compressed = timed_linear(x, weights_.kv_a_proj, step);
  const at::Tensor latent = timed_norm(compressed.narrow(-1, 0, form_.kv_rank), weights_.kv_a_norm, step);
  const at::Tensor own =
      timed_linear(latent, weights_.kv_b_proj, step).view({arms, rows, heads, form_.own_key_dim + form_.value_dim});
  const at::Tensor shared = compressed.narrow(-1, form_.kv_rank, form_.shared_key_dim)
                                .unsqueeze(2)
                                .expand({arms, rows, heads, form_.shared_key_dim});
  const at::Tensor k = at::cat({own.narrow(-1, 0, form_.own_key_dim), shared}, -1).flatten(2);
  const at::Tensor v = own.narrow(-1, form_.own_key_dim, form_.value_dim).flatten(2);
  AttentionForm form;
  form.num_heads = form.num_kv_heads = heads;
  form.head_dim = form_.key_dim();
  return timed_linear(attend_arms(q, k, v, form, index_, step), weights_.o_proj, step);
}

std::unique_ptr<Block> load_latent_attention(HybridBuilder& builder, const std::string& name,
                                             const LatentAttentionForm& form, double eps) {
  const std::int64_t hidden = builder.architecture().hidden_size, heads = form.num_heads;
  const std::int64_t query = heads * form.key_dim();
  LatentAttentionWeights weights;
  if (form.q_rank == 0) {
    weights.q_proj = builder.linear(name + ".q_proj", query, hidden, false);
  } else {
    weights.q_a_proj = builder.linear(name + ".q_a_proj", form.q_rank, hidden, form.bias);
    weights.q_a_norm = builder.norm(name + ".q_a_layernorm", eps, form.q_rank);
    weights.q_proj = builder.linear(name + ".q_b_proj", query, form.q_rank, false);
  }
  weights.kv_a_proj =
      builder.linear(name + ".kv_a_proj_with_mqa", form.kv_rank + form.shared_key_dim, hidden, form.bias);
  weights.kv_a_norm = builder.norm(name + ".kv_a_layernorm", eps, form.kv_rank);
  weights.kv_b_proj =
      builder.linear(name + ".kv_b_proj", heads * (form.own_key_dim + form.value_dim), form.kv_rank, false);
  weights.o_proj = builder.linear(name + ".o_proj", hidden, heads * form.value_dim, form.bias);
  const std::size_t index = builder.add_attention_cache({heads, form.key_dim(), form.value_dim, builder.device()});
  return std::make_unique<LatentAttentionBlock>(std::move(weights), form, index);
}

}  // namespace replayeval
