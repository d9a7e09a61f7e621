// Bytes that decoding one sequence holds and moves, predicted from shapes alone.
#pragma once

#include <cstdint>

#include "eval/model/architecture.h"
#include "kernels/types.h"

namespace replayeval {

// Bytes of one sequence, over all layers of the kind.
std::int64_t state_bytes(const Architecture& architecture, Dtype state);
// An inputs ring: x and B in `ring`, dt in float32, buffer_len entries.
std::int64_t ring_bytes(const Architecture& architecture, std::int64_t buffer_len, Dtype ring);
std::int64_t conv_state_bytes(const Architecture& architecture, Dtype compute);
std::int64_t kv_bytes_per_token(const Architecture& architecture, Dtype compute);

// Bytes that the recurrences read and write per decoded token and sequence, averaged over a ring cycle of L =
// buffer_len tokens. With |S| the state's bytes, e those of one ring entry and io those of x, B, C, dt and y (in
// `compute`):
//   exact   2 |S| + io                                      the state is read and written
//   replay  (1 + 1/L) |S| + e (L-1)/2 + e (L-1)/L + io      the state is read, and written once a cycle; each token
//   reads
//                                                           the (L-1)/2 entries before it, on average, and all tokens
//                                                           but the flush's leave an entry of their own
// The routes move the same bytes. Convolution, gate, norm and dense layers are equal in both and left out.
double exact_bytes_per_token(const Architecture& architecture, Dtype state, Dtype compute);
double replay_bytes_per_token(const Architecture& architecture, std::int64_t buffer_len, Dtype state, Dtype ring,
                              Dtype compute);

}  // namespace replayeval
