// What config.json says of a model, before any weight is read: enough to predict memory and traffic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "eval/checkpoint/checkpoint.h"
#include "eval/model/norm_span.h"
#include "kernels/delta_rule/delta_rule.h"
#include "kernels/mamba2/mamba2.h"

namespace replayeval {

// By its mixer, or, where it has none, by its feed-forward part. mamba2_attention: a layer that holds both, side by
// side or one behind the other.
enum class LayerKind : std::uint8_t { mamba2, gated_delta, kda, attention, mlp, moe, mamba2_attention };
std::string_view layer_kind_name(LayerKind kind);

// Of every layer with routed experts.
struct MixtureShape {
  std::int64_t experts = 0, chosen = 0;       // chosen: experts a token
  std::int64_t intermediate_size = 0;         // of an expert
  std::int64_t shared_intermediate_size = 0;  // of what every token goes through beside its experts; 0: nothing
  std::int64_t latent_size = 0;               // width that the experts work in; 0: hidden_size
};

struct Architecture {
  std::string model_type;
  std::vector<LayerKind> layers;
  std::int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, max_positions = 0;
  mamba2::Shape mamba;            // of every Mamba-2 layer
  NormGroupSize norm_group_size;  // of their gated norm
  delta_rule::Shape delta;        // of every delta-rule layer
  std::int64_t conv_kernel = 0;
  std::int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;  // of every attention layer
  std::int64_t value_head_dim = 0;                             // of its values; 0: head_dim
  MixtureShape mixture;
  std::vector<std::string> keys_read, keys_ignored;  // config.json's, sorted

  std::int64_t count(LayerKind kind) const;  // mamba2_attention counts as mamba2 and as attention, too
  std::int64_t state_space_layers() const;   // of Mamba-2 and of the delta rule
  bool has_delta_rule() const { return count(LayerKind::gated_delta) + count(LayerKind::kda) != 0; }
  delta_rule::Family delta_family() const;  // of the delta-rule layers, which are of one kind
  std::int64_t conv_dim() const;            // channels of the convolution of a Mamba-2 or of a delta-rule layer
  RingForm published_ring_form() const;     // deltas for the delta rule, inputs for Mamba-2
};

// Throws CheckpointError on an unsupported model_type, a missing, bad or unknown key.
Architecture describe_architecture(const Checkpoint& checkpoint);

// The type that most bytes of the weights are stored in, float8 apart; without weights the one that config.json names.
// Float32 where that is no type of ours. What compute_dtype defaults to on CUDA.
Dtype stored_dtype(const Checkpoint& checkpoint);

}  // namespace replayeval
