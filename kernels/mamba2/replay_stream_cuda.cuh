// One output_only step of a large batch, flushes included: the state streams through shared memory (stream_cuda.cuh).
// The bits are those of replay_block_cuda.cuh.
#pragma once

#include "kernels/mamba2/replay_arguments_cuda.cuh"
#include "kernels/mamba2/stream_cuda.cuh"
#include "kernels/stream_ring_cuda.cuh"

namespace replayeval::mamba2::cuda {

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
struct ReplayJob {
  static constexpr Dtype kState = kStateDtype;
  using Arguments = StreamReplayArguments;
  using Token = UnitOperands;

  struct Weights {
    float dt[kMaxUnitHeads][kMaxBufferLen], weight[kMaxUnitHeads][kMaxBufferLen], scale[kMaxUnitHeads];
  };
  // What is written before a unit's first step in time comes twice: slower warps may still be reading.
  struct Shared {
    UnitToken token[2];
    Weights weights[2];
    float dots[kMaxBufferLen + 2];
  };

  __device__ static __forceinline__ UnitRing<kRing> ring_of(const Arguments& a) {
    return {a.form.buffer_len, a.shape.head_dim};
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
    const RingView from{a.ring.B, a.ring.x, a.ring.dt, a.shape.num_groups, a.shape.num_heads};
    ring_of(a).copy(from, place.slot, heads.group, heads.first, place.cursor, to, barrier);
  }

  // A warp a head: the time steps of the ring and of the token, and what the entries weigh.
  __device__ static __forceinline__ void weigh(const Arguments& a, const UnitHeads& heads, const Token& token,
                                               const float* ring_dt, int cursor, Weights& to) {
    if (!Token::has_dt(heads)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int k = Token::dt_head();
    const auto L = static_cast<int>(a.form.buffer_len);
    for (int j = lane; j < cursor; j += 32) to.dt[k][j] = ring_dt[k * L + j];
    to.dt[k][cursor] = token.dt(a.parameters);
    __syncwarp();
    ring_weights(Flush::summed, token.rate(), to.dt[k], cursor + 1, to.weight[k], &to.scale[k], lane, 32);
  }

  // y of the row that this lane finishes, but for D x, from S_0 C.
  __device__ static __forceinline__ float sum_entries(const char* ring_x, int P, const float* weight, const float* dots,
                                                      int cursor, float scale, float sum, float x) {
    float y = scale * sum;
#pragma unroll 4
    for (int j = 0; j < cursor; ++j) y = fmaf(weight[j] * dots[j], ring_element<kRing>(ring_x, j * P), y);
    return fmaf(weight[cursor] * dots[cursor], x, y);
  }

  // The token becomes the ring's entry `cursor`.
  __device__ static __forceinline__ void append(const Arguments& a, const UnitHeads& heads, const Place& place,
                                                const UnitToken& token, const Weights& weights) {
    const auto L = static_cast<int>(a.form.buffer_len);
    const auto P = static_cast<int>(a.shape.head_dim);
    const auto i = static_cast<int>(threadIdx.x);
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_heads + heads.first;
    store_element(a.ring.x, ((head + i / P) * L + place.cursor) * P + i % P, token.x[i], kRing);
    if (i < heads.count) a.ring.dt[(head + i) * L + place.cursor] = weights.dt[i][place.cursor];
    if (!heads.leads_group || i >= kTileColumns) return;
    const std::int64_t group = static_cast<std::int64_t>(place.slot) * a.shape.num_groups + heads.group;
    store_element(a.ring.B, (group * L + place.cursor) * kTileColumns + i, token.B[i], kRing);
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
    operands.store(token);
    weigh(a, heads, operands, ring.scalars(memory), cursor, weights);
    const float D = operands.D();
    next();
    sync_compute();
    float C[1][4];
    load4<Dtype::float32>(token.C, StreamTile::column_of(0), C[0]);
    if (!flush) {
      ring_dots<kRing>(memory, token.B, cursor, C, shared.dots);
      sync_compute();
    }

    float own_sum = 0.0F;
    StreamTile tile(kTileColumns, kTileRows);
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int row = t * kTileRows + tile.block_row;
      tiles.take(tile);
      if (flush) {
        const int k = ring.head_of(row);
        add_entries<kRing>(tile, memory, ring.row(memory, row), ring.head_rows, cursor, weights.scale[k],
                           weights.weight[k]);
        tile.add_outer(weights.weight[k][cursor], token.x + row, token.B);
      }
      const float sum = tile.dot(C);
      if (own_tile() == t) own_sum = sum;
      if (flush) store_tile<kState>(a, place, unit, t, tile, counts);
    }

    const int row = own_tile() * kTileRows + tile.block_row + StreamTile::own_row();
    const int k = ring.head_of(row);
    float y = own_sum;
    if (!flush) {
      y = sum_entries(ring.row(memory, row), ring.head_rows, weights.weight[k], shared.dots, cursor, weights.scale[k],
                      own_sum, token.x[row]);
    }
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + row, fmaf(D, token.x[row], y), a.out.dtype);
    if (!flush) append(a, heads, place, token, weights);
  }
};

}  // namespace replayeval::mamba2::cuda
