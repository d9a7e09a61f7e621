// One output_only step with a deltas ring, flushes included: the state streams through shared memory (stream_cuda.cuh).
// The bits are those of replay_token_cuda.cuh.
#pragma once

#include "kernels/delta_rule/replay_stream_channels_cuda.cuh"
#include "kernels/delta_rule/stream_cuda.cuh"
#include "kernels/stream_ring_cuda.cuh"
#include "kernels/vector_products_cuda.cuh"

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
  bool fours;                  // reads_fours(), and f where it is read so
  bool bias_in_fours = false;  // dt_bias, likewise
  // With a decay for each key channel:
  Divisor group_heads{};
  int unit_keys = 0;  // unit_keys_of()
};

// Of a unit: the token, k and q (0 and 1) in parts; what keys weigh in each value head, and what all decays come to;
// their products with k and q.
struct HeadWindow {
  VectorParts vectors;
  UnitToken token;
  float weight[kMaxUnitHeads][kMaxBufferLen], decay[kMaxUnitHeads];
  float by_k[kMaxBufferLen], by_q[kMaxBufferLen];
};

// With one decay a head the keys weigh the same in all of a group's heads but for a factor.
template <class Job>
class HeadColumns : public ColumnOperands {
 public:
  struct Ready {
    float k_by_q;
  };
  __device__ __forceinline__ Ready ready(const StreamReplayArguments& a, HeadWindow& window) const {
    float q[1][4];
    float k[1][4];
    this->take(a, q, k);
    window.vectors.put(0, k[0]);
    window.vectors.put(1, q[0]);
    return {row_dot(k[0], q[0])};
  }
  __device__ static __forceinline__ void prepare(const StreamReplayArguments& a, const Unit& /*unit*/,
                                                 const Place& place, const Ready& ready, char* memory,
                                                 HeadWindow& window) {
    if (place.cursor + 1 == Job::ring_of(a).buffer_len) return prepare_flush<Job::kState, kRing>(memory, place.cursor);
    __syncwarp();
    if constexpr (kRing == Dtype::bfloat16) {
#pragma unroll 1
      for (int first = 0; first < place.cursor; first += kChunkEntries) {
        multiply_entries(first, place.cursor, window.vectors, window.by_k, window.by_q,
                         [&](int j) -> const void* { return memory + j * kRowBytes; });
      }
    } else {
      float q[1][4];
      float k[1][4];
      window.vectors.get(0, k[0]);
      window.vectors.get(1, q[0]);
      ring_dots<kRing, 2>(memory, place.cursor, {&k, &q}, {window.by_k, window.by_q});
    }
    window.by_q[place.cursor] = ready.k_by_q;  // by every lane, the same value
  }

 private:
  static constexpr Dtype kRing = Job::kRingDtype;
};

template <class Job>
class HeadRows : public RowOperands {
 public:
  struct Ready {
    float log_decay;
  };
  __device__ __forceinline__ Ready ready(const StreamReplayArguments& a, HeadWindow& window) const {
    return {this->take(a, window.token)};
  }
  // What the keys weigh, as window_cuda.cuh's weigh(); each head by its lanes.
  __device__ static __forceinline__ void prepare(const StreamReplayArguments& a, const Unit& unit, const Place& place,
                                                 const Ready& ready, const char* memory, HeadWindow& window) {
    const auto ring = Job::ring_of(a);
    const int h = lane_head();
    const bool has_head = h < unit.heads;
    const int cursor = place.cursor;
    const float* ring_decay = ring.scalars(memory) + h * ring.buffer_len;
    if (has_head) window.decay[h] = expf(sums_after(ring_decay, ready.log_decay, cursor + 1, window.weight[h]));
    __syncwarp();
    for (int j = head_lane(); has_head && j <= cursor; j += kHeadLanes) {
      window.weight[h][j] = j == cursor ? 1.0F : expf(window.weight[h][j]);
    }
  }
};

// Who prepares a unit, as Job says it to stream_cuda.cuh.
template <class Job, bool kChannels>
struct DeltasWarps {
  using ColumnPart = HeadColumns<Job>;
  using RowPart = HeadRows<Job>;
};
template <class Job>
struct DeltasWarps<Job, true> {
  using ColumnPart = ChannelColumns<Job>;
  using RowPart = ChannelRows;
  static constexpr int kColumnWarps = ColumnPart::kWarps;
  static constexpr int kBlocks = 1;  // the ring's decays leave no room for two
};

// kChannels: a decay for each key channel.
template <Dtype kStateDtype, Dtype kRing, bool kChannels>
struct DeltasJob : WithRing<DeltasJob<kStateDtype, kRing, kChannels>, StreamReplayArguments>,
                   DeltasWarps<DeltasJob<kStateDtype, kRing, kChannels>, kChannels> {
  static constexpr Dtype kState = kStateDtype;
  static constexpr Dtype kRingDtype = kRing;
  using Arguments = StreamReplayArguments;
  using Window = std::conditional_t<kChannels, ChannelsWindow, HeadWindow>;
  using FlushMemory = std::conditional_t<kChannels, FlushFactors, FlushFactorsOf<kState, kRing>>;
  using Ring = std::conditional_t<kChannels, ChannelsRing<kRing>, UnitRing<kRing>>;

  __host__ __device__ static __forceinline__ Ring ring_of(const Arguments& a) {
    if constexpr (kChannels) {
      return {a.form.buffer_len, a.cut.head_rows_log2, a.unit_keys, a.group_heads};
    } else {
      return {a.form.buffer_len, a.cut.head_rows_log2};
    }
  }
  __device__ static __forceinline__ RingView view_of(const Arguments& a) {
    return {a.ring.k, a.ring.values, a.ring.log_decay, a.shape.num_key_heads, a.shape.num_value_heads};
  }

  // The token becomes the ring's entry `cursor`, but for d.
  __device__ static __forceinline__ void append(const Arguments& a, const Unit& unit, const Place& place,
                                                const Window& window) {
    const auto L = static_cast<int>(a.form.buffer_len);
    const auto i = static_cast<int>(threadIdx.x);
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_value_heads + unit.first_head;
    if (i < unit.heads) a.ring.log_decay[(head + i) * L + place.cursor] = window.token.log_decay[i];
    if (!unit.leads_group || i >= 32) return;
    const std::int64_t group = static_cast<std::int64_t>(place.slot) * a.shape.num_key_heads + unit.group;
    float k[4];
    window.vectors.get(0, k);
    Packed4<kRing> packed;
    packed.pack(k);
    packed.store(a.ring.k, (group * L + place.cursor) * kTileColumns + unit_column());
  }

  // y of the unit's row `row` from S_0 k and S_0 q; its d goes to the ring.
  __device__ static __forceinline__ float finish_row(const Arguments& a, const Unit& unit, const Place& place,
                                                     const Ring& ring, const char* memory, const Window& window,
                                                     int row, float from_k, float from_q) {
    const int h = unit.head_of(row);
    const int cursor = place.cursor;
    const char* deltas = ring.row(memory, unit, row);
    float held = from_k;
    float y = from_q;
    if constexpr (!kChannels) {
      held = window.decay[h] * from_k;
      y = window.decay[h] * from_q;
    }
    int first = 0;
    for (; first + kAtOnce <= cursor; first += kAtOnce) {
      add_entries_at<true>(deltas, ring.head_rows, window, h, first, cursor, held, y);
    }
    if (first < cursor) add_entries_at<false>(deltas, ring.head_rows, window, h, first, cursor, held, y);
    const float d = window.token.beta[h] * (window.token.v[row] - held);
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_value_heads + unit.first_head + h;
    store_element(a.ring.values, (head * ring.buffer_len + cursor) * ring.head_rows + unit.row_in_head(row), d, kRing);
    return fmaf(by_q_of(window, h)[cursor], d, y);
  }

  __device__ static __forceinline__ void run(const Arguments& a, const Unit& unit, const Place& place,
                                             const char* memory, Tiles<kState>& tiles, const Window& window,
                                             FlushMemory& factors, ThreadCounts& counts) {
    const Ring ring = ring_of(a);
    int row = own_row();
    float y;
    if (place.cursor + 1 == ring.buffer_len) {
      y = flush_tiles(a, unit, place, ring, memory, tiles, window, factors, counts);
    } else {
      float from_k;
      float from_q;
      row = read_tiles(unit, tiles, window, from_k, from_q);
      y = finish_row(a, unit, place, ring, memory, window, row, from_k, from_q);
      if constexpr (!kChannels) append(a, unit, place, window);
    }
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + row, y, a.out.dtype);
  }

 private:
  static constexpr int kAtOnce = 8;
  static_assert(kMaxBufferLen % kAtOnce == 0);

  // The keys' products with k and q, of the unit's head h.
  __device__ static __forceinline__ const float* by_k_of(const Window& window, int h) {
    if constexpr (kChannels) {
      return window.by_k[h];
    } else {
      return window.by_k;
    }
  }
  __device__ static __forceinline__ const float* by_q_of(const Window& window, int h) {
    if constexpr (kChannels) {
      return window.by_q[h];
    } else {
      return window.by_q;
    }
  }

  // The entries first, first + 1, … of kAtOnce, or those of them below `count`, to S k and S q of a row.
  template <bool kAll>
  __device__ static __forceinline__ void add_entries_at(const char* deltas, int stride, const Window& window, int h,
                                                        int first, int count, float& held, float& y) {
    float d[kAtOnce], by_k[kAtOnce / 4][4], by_q[kAtOnce / 4][4];
    [[maybe_unused]] float weight[kAtOnce / 4][4];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      d[i] = ring_element<kRing>(deltas, (kAll ? first + i : min(first + i, count - 1)) * stride);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce / 4; ++i) {
      if constexpr (!kChannels) load4<Dtype::float32>(window.weight[h], first + 4 * i, weight[i]);
      load4<Dtype::float32>(by_k_of(window, h), first + 4 * i, by_k[i]);
      load4<Dtype::float32>(by_q_of(window, h), first + 4 * i, by_q[i]);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (!kAll && first + i >= count) break;
      if constexpr (kChannels) {
        held = fmaf(by_k[i / 4][i % 4], d[i], held);
        y = fmaf(by_q[i / 4][i % 4], d[i], y);
      } else {
        held = fmaf(weight[i / 4][i % 4] * by_k[i / 4][i % 4], d[i], held);
        y = fmaf(weight[i / 4][i % 4] * by_q[i / 4][i % 4], d[i], y);
      }
    }
  }

  // S_0 k and S_0 q of the row that this lane finishes, which is returned; with k and q decayed where the decay differs
  // by channel.
  __device__ static __forceinline__ int read_tiles(const Unit& unit, Tiles<kState>& tiles, const Window& window,
                                                   float& from_k, float& from_q) {
    if constexpr (kChannels) {
      sum_tiles(unit, tiles, window, from_k, from_q);
      return own_row();
    } else if constexpr (kReadsProducts<StreamTile, kState>) {
      return multiply_tiles(tiles, window.vectors, from_k, from_q);
    } else {
      sum_tiles(unit, tiles, window, from_k, from_q);
      return own_row();
    }
  }

  // A product has a warp's rows of two tiles; of its rows of all four a lane gets one of the t-th, t the place among
  // four lanes.
  __device__ static __forceinline__ int multiply_tiles(Tiles<kState>& tiles, const VectorParts& vectors, float& from_k,
                                                       float& from_q) {
    const int row = static_cast<int>(threadIdx.x) / 32 * StreamTile::kWarpRows + RowShare::row();
    float parts[2 * kUnitTiles];
#pragma unroll
    for (int t = 0; t < kUnitTiles; t += 2) {
      RowShare first;
      RowShare last;
      first.load(static_cast<const char*>(tiles.wait()) + row * kRowBytes);
      last.load(static_cast<const char*>(tiles.wait()) + row * kRowBytes);
      multiply_rows(first, last, vectors, parts + 2 * t);
      tiles.release(2);
    }
    float sums[2];
    deal_parts<2>(parts, sums);
    from_k = sums[0];
    from_q = sums[1];
    return static_cast<int>(threadIdx.x) % 4 * kTileRows + row;
  }

  // Two tiles' shares fill a fold: those of k for the lower half of the lanes, those of q for the upper. The lower half
  // then finishes the first two tiles, the upper the others.
  __device__ static __forceinline__ void sum_tiles(const Unit& unit, Tiles<kState>& tiles, const Window& window,
                                                   float& from_k, float& from_q) {
    float k[1][4];
    float q[1][4];
    if constexpr (!kChannels) {
      window.vectors.get(0, k[0]);
      window.vectors.get(1, q[0]);
    }
    float shares[32];
    float pair[2];
    for_rows(tiles, [&](int t, int r, const float(&values)[4]) {
      if constexpr (kChannels) {
        const int h = unit.head_of(t * kTileRows);
        if (r == 0) load4<Dtype::float32>(window.vector[0][h], unit_column(), k[0]);
        if (r == 0) load4<Dtype::float32>(window.vector[1][h], unit_column(), q[0]);
      }
      shares[t % 2 * StreamTile::kRows + r] = dot_share(values, k);
      shares[16 + t % 2 * StreamTile::kRows + r] = dot_share(values, q);
      if (t % 2 == 1 && r + 1 == StreamTile::kRows) pair[t / 2] = fold_all<32>(shares);
    });
    const bool lower = threadIdx.x % 32 < 16;
    const float given = __shfl_xor_sync(0xFFFFFFFFU, lower ? pair[1] : pair[0], 16);
    from_k = lower ? pair[0] : given;
    from_q = lower ? given : pair[1];
  }

  // S_w q of the lane's own row; S_w becomes the checkpoint.
  __device__ static __forceinline__ float flush_tiles(const Arguments& a, const Unit& unit, const Place& place,
                                                      const Ring& ring, const char* memory, Tiles<kState>& tiles,
                                                      const Window& window, FlushMemory& factors,
                                                      ThreadCounts& counts) {
    float k[1][4];
    float q[1][4];
    if constexpr (!kChannels) {
      window.vectors.get(0, k[0]);
      window.vectors.get(1, q[0]);
    }
    float own = 0.0F;
    StreamTile tile = unit_tile();
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int row = t * kTileRows + tile.block_row;
      const int h = unit.head_of(row);
      if constexpr (kChannels) {
        load4<Dtype::float32>(window.vector[1][h], unit_column(), q[0]);
        load4<Dtype::float32>(window.vector[2][h], unit_column(), k[0]);
        tiles.load(tile);
        tile.multiply_columns(window.vector[0][h]);
        add_weighed<kRing, Dtype::float32>(  // the keys, weighed, are in the gates' place
            tile, ring.gates(memory, h), ring.row(memory, unit, row), ring.head_rows, place.cursor,
            [](int /*entry*/) { return 1.0F; }, factors);
      } else {
        take_flushed<kState, kRing>(
            tiles, tile,
            {memory, ring.row(memory, unit, row), ring.head_rows, place.cursor, window.decay[h], window.weight[h]},
            factors);
      }
      update_rows(tile, k, window.token.v + t * kTileRows, window.token.beta[h]);
      keep_own(tile.dot(q), t, own);
      tiles.release();
      store_tile<kState>(a, place, unit, t, tile, counts);
    }
    return own;
  }
};

}  // namespace replayeval::delta_rule::cuda
