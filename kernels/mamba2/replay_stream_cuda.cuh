// One output_only step, flushes included: the state streams through shared memory (stream_cuda.cuh).
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
  bool fours;  // reads_fours()
};

template <Dtype kStateDtype, Dtype kRing>
struct ReplayJob : WithRing<ReplayJob<kStateDtype, kRing>, StreamReplayArguments> {
  static constexpr Dtype kState = kStateDtype;
  using Arguments = StreamReplayArguments;

  // Of a unit: the token, what the ring's entries and it weigh in each head, and their B · C.
  struct Window {
    UnitToken token;
    float weight[kMaxUnitHeads][kMaxBufferLen], scale[kMaxUnitHeads], dt[kMaxUnitHeads];
    float dots[kMaxBufferLen];
  };
  using FlushMemory = FlushFactorsOf<kState, kRing>;

  __device__ static __forceinline__ UnitRing<kRing> ring_of(const Arguments& a) {
    return {a.form.buffer_len, a.cut.head_rows_log2};
  }
  __device__ static __forceinline__ RingView view_of(const Arguments& a) {
    return {a.ring.B, a.ring.x, a.ring.dt, a.shape.num_groups, a.shape.num_heads};
  }

  class ColumnPart : public ColumnOperands {
   public:
    struct Ready {
      float B[1][4], C[1][4];
    };
    __device__ __forceinline__ Ready ready(const Arguments& a, Window& window) const {
      Ready ready;
      this->take(a, window.token, ready.B, ready.C);
      return ready;
    }
    __device__ static __forceinline__ void prepare(const Arguments& a, const Unit& /*unit*/, const Place& place,
                                                   const Ready& ready, char* memory, Window& window) {
      if (place.cursor + 1 == ring_of(a).buffer_len) return prepare_flush<kState, kRing>(memory, place.cursor);
      ring_dots<kRing, 1>(memory, place.cursor, {&ready.C}, {window.dots});
      window.dots[place.cursor] = row_dot(ready.B[0], ready.C[0]);  // by every lane, the same value
    }
  };

  class RowPart : public RowOperands {
   public:
    struct Ready {
      float dt, rate;
    };
    __device__ __forceinline__ Ready ready(const Arguments& a, Window& window) const {
      this->take(a, window.token);
      return {this->dt(a), this->rate()};
    }
    // What the entries weigh, as scalars_cuda.cuh's ring_weights(); each head by its lanes.
    __device__ static __forceinline__ void prepare(const Arguments& a, const Unit& unit, const Place& place,
                                                   const Ready& ready, const char* memory, Window& window) {
      const UnitRing<kRing> ring = ring_of(a);
      const int k = lane_head();
      const bool has_head = k < unit.heads;
      const int cursor = place.cursor;
      const float* dt = ring.scalars(memory) + k * ring.buffer_len;
      if (has_head) {
        window.scale[k] = expf(ready.rate * sums_after(dt, ready.dt, cursor + 1, window.weight[k]));
        window.dt[k] = ready.dt;
      }
      __syncwarp();
      for (int j = head_lane(); has_head && j <= cursor; j += kHeadLanes) {
        window.weight[k][j] = j == cursor ? ready.dt : dt[j] * expf(ready.rate * window.weight[k][j]);
      }
    }
  };

  // y of the row that this lane finishes, but for D x, from S_0 C.
  __device__ static __forceinline__ float sum_entries(const char* ring_x, int P, const float* weight, const float* dots,
                                                      int cursor, float scale, float sum, float x) {
    float y = scale * sum;
    for_entries<kRing>(ring_x, P, cursor, [&](int j, float entry) { y = fmaf(weight[j] * dots[j], entry, y); });
    return fmaf(weight[cursor] * dots[cursor], x, y);
  }

  // The token becomes the ring's entry `cursor`.
  __device__ static __forceinline__ void append(const Arguments& a, const Unit& unit, const Place& place,
                                                const Window& window) {
    const auto L = static_cast<int>(a.form.buffer_len);
    const auto i = static_cast<int>(threadIdx.x);
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_heads + unit.first_head;
    store_element(a.ring.x,
                  (((head + unit.head_of(i)) * L + place.cursor) << unit.head_rows_log2) + unit.row_in_head(i),
                  window.token.x[i], kRing);
    if (i < unit.heads) a.ring.dt[(head + i) * L + place.cursor] = window.dt[i];
    if (!unit.leads_group || i >= kTileColumns) return;
    const std::int64_t group = static_cast<std::int64_t>(place.slot) * a.shape.num_groups + unit.group;
    store_element(a.ring.B, (group * L + place.cursor) * kTileColumns + i, window.token.B[i], kRing);
  }

  __device__ static __forceinline__ void run(const Arguments& a, const Unit& unit, const Place& place,
                                             const char* memory, Tiles<kState>& tiles, const Window& window,
                                             FlushMemory& factors, ThreadCounts& counts) {
    const UnitRing<kRing> ring = ring_of(a);
    const int cursor = place.cursor;
    const bool flush = cursor + 1 == ring.buffer_len;
    float C[1][4];
    load4<Dtype::float32>(window.token.C, StreamTile::column_of(0), C[0]);
    const float sum =
        flush ? flush_tiles(a, unit, place, ring, memory, tiles, window, C, factors, counts) : read_tiles(tiles, C);
    const int row = own_row();
    const int k = unit.head_of(row);
    const float x = window.token.x[row];
    float y = sum;
    if (!flush) {
      y = sum_entries(ring.row(memory, unit, row), ring.head_rows, window.weight[k], window.dots, cursor,
                      window.scale[k], sum, x);
      append(a, unit, place, window);
    }
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + row, fmaf(window.token.D[k], x, y),
                  a.out.dtype);
  }

 private:
  // S_0 C of the lane's own row.
  __device__ static __forceinline__ float read_tiles(Tiles<kState>& tiles, const float (&C)[1][4]) {
    constexpr int kRows = StreamTile::kRows;
    float shares[2 * kRows];
    float pair[2];  // of tiles, their 16 rows' sums in two lanes each
    for_rows(tiles, [&](int t, int r, const float(&values)[4]) {
      shares[t % 2 * kRows + r] = dot_share(values, C);
      if (t % 2 == 1 && r + 1 == kRows) pair[t / 2] = fold_all<2 * kRows>(shares);
    });
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float lower = __shfl_sync(0xFFFFFFFFU, pair[0], lane % 16 * 2);
    const float upper = __shfl_sync(0xFFFFFFFFU, pair[1], lane % 16 * 2);
    return lane < 16 ? lower : upper;
  }

  // S_w C of the lane's own row; S_w becomes the checkpoint.
  __device__ static __forceinline__ float flush_tiles(const Arguments& a, const Unit& unit, const Place& place,
                                                      const UnitRing<kRing>& ring, const char* memory,
                                                      Tiles<kState>& tiles, const Window& window,
                                                      const float (&C)[1][4], FlushMemory& factors,
                                                      ThreadCounts& counts) {
    float own = 0.0F;
    StreamTile tile = unit_tile();
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int row = t * kTileRows + tile.block_row;
      const int k = unit.head_of(row);
      take_flushed<kState, kRing>(
          tiles, tile,
          {memory, ring.row(memory, unit, row), ring.head_rows, place.cursor, window.scale[k], window.weight[k]},
          factors);
      tile.add_outer(window.weight[k][place.cursor], window.token.x + row, window.token.B);
      keep_own(tile.dot(C), t, own);
      tiles.release();
      store_tile<kState>(a, place, unit, t, tile, counts);
    }
    return own;
  }
};

}  // namespace replayeval::mamba2::cuda
