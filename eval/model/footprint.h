// Bytes that decoding one sequence holds and moves, predicted from shapes alone.
#pragma once

#include <cstdint>

#include "eval/model/architecture.h"
#include "kernels/types.h"

namespace replayeval {

// Bytes of one sequence, over all layers of the kind.
std::int64_t state_bytes(const Architecture& architecture, Dtype state);
// A ring of buffer_len entries. Mamba-2: x and B in `ring`, dt in float32. Delta rule: d (deltas) or v (inputs) and k
// in `ring`, the log-decays and, with inputs, beta in float32.
std::int64_t ring_bytes(const Architecture& architecture, RingForm form, std::int64_t buffer_len, Dtype ring);
std::int64_t conv_state_bytes(const Architecture& architecture, Dtype compute);
std::int64_t kv_bytes_per_token(const Architecture& architecture, Dtype compute);

// Bytes that the recurrences read and write per decoded token and sequence, averaged over a ring cycle of L =
// buffer_len tokens. With |S| the state's bytes, e those of one ring entry and io those of the recurrence's inputs
// and y (in `compute`):
//   exact   2 |S| + io                                      the state is read and written
//   replay  (1 + 1/L) |S| + e (L-1)/2 + e (L-1)/L + io      the state is read, and written once a cycle; each token
//   reads
//                                                           the (L-1)/2 entries before it, on average, and all tokens
//                                                           but the flush's leave an entry of their own
// The routes move the same bytes. Convolution, gate, norm and dense layers are equal in both and left out.
double exact_bytes_per_token(const Architecture& architecture, Dtype state, Dtype compute);
double replay_bytes_per_token(const Architecture& architecture, RingForm form, std::int64_t buffer_len, Dtype state,
                              Dtype ring, Dtype compute);

// What a decode step reads of the weights.
struct StepWeights {
  std::int64_t dense = 0;          // bytes that every step reads: layers but for routed experts, norms and head
  std::int64_t experts = 0;        // of all routed experts
  std::int64_t embedding_row = 0;  // of one token's embedding
};

// Bytes of weights that a step of `batch` sequences reads: the dense ones once, an embedding for each sequence, and the
// experts that someone chose. If choices are even and independent these are 1 - (1 - chosen / experts)^batch of all.
double weight_bytes_per_step(const Architecture& architecture, const StepWeights& weights, std::int64_t batch);

// Bytes of a whole step: its weights and, for each sequence, `mixer_bytes` of recurrence (above) and the keys and
// values of `context` tokens. Activations, which stay in caches, are left out, as is the convolution's state.
double step_bytes(const Architecture& architecture, const StepWeights& weights, std::int64_t batch, double mixer_bytes,
                  std::int64_t context, Dtype compute);

}  // namespace replayeval
