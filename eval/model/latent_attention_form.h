// What tells one multi-head latent attention from another.
#pragma once

#include <cstdint>

namespace replayeval {

struct LatentAttentionForm {
  std::int64_t num_heads = 0;
  std::int64_t q_rank = 0;   // of the queries' bottleneck; 0: none
  std::int64_t kv_rank = 0;  // of the bottleneck that keys and values share
  // A head's key has own_key_dim elements of its own, then shared_key_dim that all heads have in common.
  std::int64_t own_key_dim = 0, shared_key_dim = 0, value_dim = 0;
  bool bias = false;  // of the projections into the bottlenecks and of the output's
  std::int64_t key_dim() const { return own_key_dim + shared_key_dim; }
};

}  // namespace replayeval
