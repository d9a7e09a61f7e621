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
  bool fours;  // reads_fours()
};

template <Dtype kStateDtype, Dtype kRing>
struct DeltasJob {
  static constexpr Dtype kState = kStateDtype;
  using Arguments = StreamReplayArguments;
  using Token = UnitOperands;

  // Of a unit: the token; what keys weigh in each value head, and what all decays come to; their products with k and q.
  struct Window {
    UnitToken token;
    float weight[kMaxUnitHeads][kMaxBufferLen], decay[kMaxUnitHeads];
    float by_k[kMaxBufferLen], by_q[kMaxBufferLen];
  };
  // Written while slower warps may still be at the unit before: hence twice.
  struct Shared {
    Window windows[2];
    FlushFactors factors;
  };

  __device__ static __forceinline__ UnitRing<kRing> ring_of(const Arguments& a) {
    return {a.form.buffer_len, a.cut.head_rows_log2};
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
    const RingView from{a.ring.k, a.ring.values, a.ring.log_decay, a.shape.num_key_heads, a.shape.num_value_heads};
    ring_of(a).copy(from, place.slot, unit, place.cursor, to, barrier);
  }

  // A warp a head, once its token's decay is known: window_cuda.cuh's weigh().
  __device__ static __forceinline__ void weigh(const Unit& unit, const float* ring_decay, int buffer_len, int cursor,
                                               Window& to) {
    if (!Token::has_gates(unit)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int h = Token::gate_head();
    const float own = to.token.log_decay[h];
    const auto log_decay = [&](int j) { return j < cursor ? ring_decay[h * buffer_len + j] : own; };
    LaneValues values{log_decay(lane), 0.0F};
    if (cursor >= 32) values.high = log_decay(lane + 32);
    LaneValues after;
    to.decay[h] = expf(sums_after(values, cursor + 1, after));  // by every lane, the same value
    if (lane <= cursor) to.weight[h][lane] = lane == cursor ? 1.0F : expf(after.low);
    if (lane + 32 <= cursor) to.weight[h][lane + 32] = lane + 32 == cursor ? 1.0F : expf(after.high);
  }

  // The token becomes the ring's entry `cursor`, but for d.
  __device__ static __forceinline__ void append(const Arguments& a, const Unit& unit, const Place& place,
                                                const UnitToken& token) {
    const auto L = static_cast<int>(a.form.buffer_len);
    const auto i = static_cast<int>(threadIdx.x);
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_value_heads + unit.first_head;
    if (i < unit.heads) a.ring.log_decay[(head + i) * L + place.cursor] = token.log_decay[i];
    if (!unit.leads_group || i >= kTileColumns) return;
    const std::int64_t group = static_cast<std::int64_t>(place.slot) * a.shape.num_key_heads + unit.group;
    store_element(a.ring.k, (group * L + place.cursor) * kTileColumns + i, token.k[i], kRing);
  }

  // y of the row that this lane finishes, from S_0 k and S_0 q; its d goes to the ring.
  __device__ static __forceinline__ float finish_row(const Arguments& a, const Unit& unit, const Place& place,
                                                     const UnitRing<kRing>& ring, const char* memory,
                                                     const Window& window, float from_k, float from_q) {
    const int row = own_row();
    const int h = unit.head_of(row);
    const int cursor = place.cursor;
    const char* deltas = ring.row(memory, unit, row);
    float held = window.decay[h] * from_k;
    float y = window.decay[h] * from_q;
    for (int j = 0; j < cursor; j += 4) {
      float w[4];
      float by_k[4];
      float by_q[4];
      load4<Dtype::float32>(window.weight[h], j, w);
      load4<Dtype::float32>(window.by_k, j, by_k);
      load4<Dtype::float32>(window.by_q, j, by_q);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (j + i >= cursor) break;
        const float d = ring_element<kRing>(deltas, (j + i) * ring.head_rows);
        held = fmaf(w[i] * by_k[i], d, held);
        y = fmaf(w[i] * by_q[i], d, y);
      }
    }
    const float d = window.token.beta[h] * (window.token.v[row] - held);
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_value_heads + unit.first_head + h;
    store_element(a.ring.values, (head * ring.buffer_len + cursor) * ring.head_rows + unit.row_in_head(row), d, kRing);
    return fmaf(window.by_q[cursor], d, y);
  }

  template <class Next>
  __device__ static __forceinline__ void run(const Arguments& a, const Unit& unit, const Place& place, Token& operands,
                                             const Next& next, const char* memory, Tiles<kState>& tiles, Shared& shared,
                                             int parity, ThreadCounts& counts) {
    const UnitRing<kRing> ring = ring_of(a);
    Window& window = shared.windows[parity];
    const int cursor = place.cursor;
    const bool flush = cursor + 1 == ring.buffer_len;
    float q[1][4];
    float k[1][4];
    operands.prepare(a, unit, window.token, q, k);
    if (!flush) {
      ring_dots<kRing>(memory, cursor, k, window.by_k);
      ring_dots<kRing>(memory, cursor, q, window.by_q);
      if (Token::leads()) window.by_q[cursor] = row_dot(k[0], q[0]);  // every lane, the same value
    }
    weigh(unit, ring.scalars(memory), ring.buffer_len, cursor, window);
    next();
    sync_compute();

    float y;
    if (flush) {
      y = flush_tiles(a, unit, place, ring, memory, tiles, window, q, k, shared.factors, counts);
    } else {
      float from_k;
      float from_q;
      read_tiles(tiles, q, k, from_k, from_q);
      y = finish_row(a, unit, place, ring, memory, window, from_k, from_q);
      append(a, unit, place, window.token);
    }
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + own_row(), y, a.out.dtype);
  }

 private:
  // S_0 k and S_0 q of the lane's own row. Two tiles' shares fill a fold: those of k for the lower half of the lanes,
  // those of q for the upper. The lower half then finishes the first two tiles, the upper the others.
  __device__ static __forceinline__ void read_tiles(Tiles<kState>& tiles, const float (&q)[1][4],
                                                    const float (&k)[1][4], float& from_k, float& from_q) {
    float shares[32];
    float pair[2];
    for_rows(tiles, [&](int t, int r, const float(&values)[4]) {
      shares[t % 2 * StreamTile::kRows + r] = dot_share(values, k);
      shares[16 + t % 2 * StreamTile::kRows + r] = dot_share(values, q);
      if (t % 2 == 1 && r + 1 == StreamTile::kRows) pair[t / 2] = fold_all(shares);
    });
    const bool lower = threadIdx.x % 32 < 16;
    const float given = __shfl_xor_sync(0xFFFFFFFFU, lower ? pair[1] : pair[0], 16);
    from_k = lower ? pair[0] : given;
    from_q = lower ? given : pair[1];
  }

  // S_w q of the lane's own row; S_w becomes the checkpoint.
  __device__ static __forceinline__ float flush_tiles(const Arguments& a, const Unit& unit, const Place& place,
                                                      const UnitRing<kRing>& ring, const char* memory,
                                                      Tiles<kState>& tiles, const Window& window,
                                                      const float (&q)[1][4], const float (&k)[1][4],
                                                      FlushFactors& factors, ThreadCounts& counts) {
    float own = 0.0F;
    StreamTile tile(kTileColumns, kTileRows);
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int row = t * kTileRows + tile.block_row;
      const int h = unit.head_of(row);
      tiles.take(tile);
      add_entries<kRing>(tile, memory, ring.row(memory, unit, row), ring.head_rows, place.cursor, window.decay[h],
                         window.weight[h], factors);
      update_rows(tile, k, window.token.v + t * kTileRows, window.token.beta[h]);
      keep_own(tile.dot(q), t, own);
      store_tile<kState>(a, place, unit, t, tile, counts);
    }
    return own;
  }
};

}  // namespace replayeval::delta_rule::cuda
