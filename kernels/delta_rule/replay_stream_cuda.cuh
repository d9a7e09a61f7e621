// One output_only step of a large batch of Gated DeltaNet with a deltas ring, flushes included: the state streams
// through shared memory (stream_cuda.cuh). The bits are those of replay_token_cuda.cuh.
#pragma once

#include "kernels/delta_rule/stream_cuda.cuh"
#include "kernels/stream_ring_cuda.cuh"

namespace replayeval::delta_rule::cuda {

struct StreamReplayArguments {
  Shape shape;
  ReplayForm form;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Ring ring;
  Output out;
  StreamCut cut;
};

template <Dtype kStateDtype, Dtype kRing>
struct DeltasJob {
  static constexpr Dtype kState = kStateDtype;
  using Arguments = StreamReplayArguments;
  using Token = UnitOperands;

  // What keys weigh, and what all decays come to.
  struct Weights {
    float log_decay[kMaxUnitHeads][kMaxBufferLen], weight[kMaxUnitHeads][kMaxBufferLen], decay[kMaxUnitHeads];
  };
  // What is written before a unit's first step in time comes twice: slower warps may still be reading.
  struct Shared {
    UnitToken token[2];
    Weights weights[2];
    float by_k[kMaxBufferLen + 2], by_q[kMaxBufferLen + 2];
  };

  __device__ static __forceinline__ UnitRing<kRing> ring_of(const Arguments& a) {
    return {a.form.buffer_len, a.shape.value_dim};
  }
  __device__ static __forceinline__ int cursor(const Arguments& a, int slot) {
    const int cursor = a.ring.cursor[slot];
    return cursor < a.form.buffer_len ? cursor : -1;
  }
  __device__ static __forceinline__ unsigned operand_bytes(const Arguments& a, int cursor) {
    return ring_of(a).copied_bytes(cursor);
  }
  __device__ static __forceinline__ void copy_operands(const Arguments& a, const Unit& unit, const Place& place,
                                                       char* to, Barrier& barrier) {
    const UnitHeads heads(a.shape, unit);
    const RingView from{a.ring.k, a.ring.values, a.ring.log_decay, a.shape.num_key_heads, a.shape.num_value_heads};
    ring_of(a).copy(from, place.slot, heads.key_head, heads.first, place.cursor, to, barrier);
  }

  // A warp a head, after its token's decay is known; the arithmetic of window_cuda.cuh's weigh().
  __device__ static __forceinline__ void weigh(const UnitHeads& heads, const UnitToken& token, const float* ring_decay,
                                               int buffer_len, int cursor, Weights& to) {
    if (!Token::has_gates(heads)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int h = Token::gate_head();
    const int count = cursor + 1;
    for (int j = lane; j < cursor; j += 32) to.log_decay[h][j] = ring_decay[h * buffer_len + j];
    to.log_decay[h][cursor] = token.log_decay[h];
    __syncwarp();
    for (int j = lane - 1; j < count; j += 32) {  // entry -1 stands for what all decays come to
      float after = 0.0F;
      for (int i = count - 1; i > j; --i) after = after + to.log_decay[h][i];
      const float weight = j + 1 == count ? 1.0F : expf(after);
      if (j < 0) {
        to.decay[h] = weight;
      } else {
        to.weight[h][j] = weight;
      }
    }
  }

  // The token becomes the ring's entry `cursor`, but for d.
  __device__ static __forceinline__ void append(const Arguments& a, const UnitHeads& heads, const Place& place,
                                                const UnitToken& token) {
    const auto L = static_cast<int>(a.form.buffer_len);
    const auto i = static_cast<int>(threadIdx.x);
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_value_heads + heads.first;
    if (i < heads.count) a.ring.log_decay[(head + i) * L + place.cursor] = token.log_decay[i];
    if (!heads.leads_group || i >= kTileColumns) return;
    const std::int64_t group = static_cast<std::int64_t>(place.slot) * a.shape.num_key_heads + heads.key_head;
    store_element(a.ring.k, (group * L + place.cursor) * kTileColumns + i, token.k[i], kRing);
  }

  // y of the row that this lane finishes, from S_0 k and S_0 q; its d goes to the ring.
  __device__ static __forceinline__ float finish_row(const Arguments& a, const Unit& unit, const UnitHeads& heads,
                                                     const Place& place, const UnitRing<kRing>& ring,
                                                     const char* memory, const UnitToken& token, const Weights& weights,
                                                     const Shared& shared, int row, float by_k, float by_q) {
    const int h = ring.head_of(row);
    const int cursor = place.cursor;
    const char* deltas = ring.row(memory, row);
    const float* weight = weights.weight[h];
    float held = weights.decay[h] * by_k;
    float y = weights.decay[h] * by_q;
#pragma unroll 4
    for (int j = 0; j < cursor; ++j) {
      const float d = ring_element<kRing>(deltas, j * ring.head_rows);
      held = fmaf(weight[j] * shared.by_k[j], d, held);
      y = fmaf(weight[j] * shared.by_q[j], d, y);
    }
    const float d = token.beta[h] * (token.v[row] - held);
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_value_heads + heads.first + h;
    store_element(a.ring.values, (head * ring.buffer_len + cursor) * ring.head_rows + row % ring.head_rows, d, kRing);
    return fmaf(shared.by_q[cursor], d, y);
  }

  template <class Next>
  __device__ static __forceinline__ void run(const Arguments& a, const Unit& unit, const Place& place, Token& operands,
                                             const Next& next, const char* memory, Tiles<kState>& tiles, Shared& shared,
                                             int parity, ThreadCounts& counts) {
    const UnitRing<kRing> ring = ring_of(a);
    const UnitHeads heads(a.shape, unit);
    UnitToken& token = shared.token[parity];
    Weights& weights = shared.weights[parity];
    const int cursor = place.cursor;
    const bool flush = cursor + 1 == ring.buffer_len;
    operands.store(a, heads, token);
    weigh(heads, token, ring.scalars(memory), ring.buffer_len, cursor, weights);
    next();
    sync_compute();
    float k[1][4];
    float q[1][4];
    load4<Dtype::float32>(token.k, StreamTile::column_of(0), k[0]);
    load4<Dtype::float32>(token.q, StreamTile::column_of(0), q[0]);
    if (!flush) {
      ring_dots<kRing>(memory, token.k, cursor, k, shared.by_k);
      ring_dots<kRing>(memory, token.k, cursor, q, shared.by_q);
      sync_compute();
    }

    float own_by_k = 0.0F;
    float own_by_q = 0.0F;
    StreamTile tile(kTileColumns, kTileRows);
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int row = t * kTileRows + tile.block_row;
      const int h = ring.head_of(row);
      tiles.take(tile);
      if (flush) {
        add_entries<kRing>(tile, memory, ring.row(memory, row), ring.head_rows, cursor, weights.decay[h],
                           weights.weight[h]);
        update_rows(tile, token.k, token.v + t * kTileRows, token.beta[h]);
      } else {
        const float by_k = tile.dot(k);
        if (own_tile() == t) own_by_k = by_k;
      }
      const float by_q = tile.dot(q);
      if (own_tile() == t) own_by_q = by_q;
      if (flush) store_tile<kState>(a, place, unit, t, tile, counts);
    }

    const int row = own_tile() * kTileRows + tile.block_row + StreamTile::own_row();
    float y = own_by_q;
    if (!flush) {
      y = finish_row(a, unit, heads, place, ring, memory, token, weights, shared, row, own_by_k, own_by_q);
      append(a, heads, place, token);
    }
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + row, y, a.out.dtype);
  }
};

}  // namespace replayeval::delta_rule::cuda
