// What differs in replay_stream_cuda.cuh where each key channel has a decay: each head weighs its keys in its own way,
// so their products with k and q are its own too, and a unit's heads may be of several groups. Four warps share a
// unit's heads and their entries.
#pragma once

#include "kernels/delta_rule/stream_channels_cuda.cuh"
#include "kernels/stream_ring_cuda.cuh"

namespace replayeval::delta_rule::cuda {

// A unit's part of a ring in shared memory, as stored. Layout: keys [unit_keys, L, kTileColumns]; for each head rows
// [L, head_rows] and 16 bytes between heads, so that lanes of different heads read from different banks; gates
// [heads, L, kTileColumns].
template <Dtype kRing>
struct ChannelsRing {
  static constexpr int kSize = kRing == Dtype::float32 ? 4 : 2;
  static constexpr int kGateBytes = kTileColumns * static_cast<int>(sizeof(float));
  int buffer_len, heads, head_rows, unit_keys;
  Divisor group_heads;

  // keys: unit_keys_of().
  __host__ __device__ __forceinline__ ChannelsRing(std::int64_t length, int head_rows_log2, int keys,
                                                   const Divisor& heads_of_group)
      : buffer_len(static_cast<int>(length)),
        heads(kUnitRows >> head_rows_log2),
        head_rows(1 << head_rows_log2),
        unit_keys(keys),
        group_heads(heads_of_group) {}

  __host__ __device__ __forceinline__ int key_stride() const { return buffer_len * kTileColumns * kSize; }
  __host__ __device__ __forceinline__ int rows_begin() const { return unit_keys * key_stride(); }
  __host__ __device__ __forceinline__ int head_stride() const { return buffer_len * head_rows * kSize + 16; }
  __host__ __device__ __forceinline__ int gates_begin() const { return rows_begin() + heads * head_stride(); }
  __host__ __device__ __forceinline__ int gate_stride() const { return buffer_len * kGateBytes; }
  __host__ __device__ __forceinline__ int bytes() const { return gates_begin() + heads * gate_stride(); }

  // Of the unit's head h; its key of entry 0, its gates of entry 0.
  __device__ __forceinline__ const char* keys(const char* memory, int h) const {
    return memory + (unit_keys == heads ? h : unit_keys == 1 ? 0 : h / 2) * key_stride();
  }
  __device__ __forceinline__ char* gates(char* memory, int h) const {
    return memory + gates_begin() + h * gate_stride();
  }
  __device__ __forceinline__ const char* gates(const char* memory, int h) const {
    return memory + gates_begin() + h * gate_stride();
  }
  // One of the unit's rows: its first entry's element; from entry to entry it is head_rows elements.
  __device__ __forceinline__ const char* row(const char* memory, const Unit& unit, int unit_row) const {
    return memory + rows_begin() + unit.head_of(unit_row) * head_stride() + unit.row_in_head(unit_row) * kSize;
  }

  // Copies `entries` entries; what copied_bytes() says comes to `barrier`.
  __device__ __forceinline__ unsigned copied_bytes(int entries) const {
    return static_cast<unsigned>(entries * ((unit_keys * kTileColumns + kUnitRows) * kSize + heads * kGateBytes));
  }
  __device__ __forceinline__ void copy(const RingView& from, int slot, const Unit& unit, int entries, char* memory,
                                       Barrier& barrier) const {
    if (entries == 0) return;
    for (int i = 0; i < unit_keys; ++i) {
      copy_bulk(memory + i * key_stride(), keys_of(from, slot, unit, i),
                static_cast<unsigned>(entries * kTileColumns * kSize), barrier);
    }
    for (int h = 0; h < heads; ++h) {
      const std::int64_t entry = (slot * from.heads + unit.first_head + h) * buffer_len;
      copy_bulk(memory + rows_begin() + h * head_stride(),
                static_cast<const char*>(from.rows) + entry * head_rows * kSize,
                static_cast<unsigned>(entries * head_rows * kSize), barrier);
      copy_bulk(gates(memory, h), from.scalars + entry * kTileColumns, static_cast<unsigned>(entries * kGateBytes),
                barrier);
    }
  }
  // All of it to the L2 cache.
  __device__ __forceinline__ void prefetch(const RingView& from, int slot, const Unit& unit) const {
    for (int i = 0; i < unit_keys; ++i) {
      prefetch_bulk(keys_of(from, slot, unit, i), static_cast<unsigned>(key_stride()));
    }
    const std::int64_t entry = (slot * from.heads + unit.first_head) * buffer_len;
    prefetch_bulk(static_cast<const char*>(from.rows) + entry * head_rows * kSize,
                  static_cast<unsigned>(buffer_len * kUnitRows * kSize));
    prefetch_bulk(from.scalars + entry * kTileColumns, static_cast<unsigned>(heads * gate_stride()));
  }

 private:
  __device__ __forceinline__ const char* keys_of(const RingView& from, int slot, const Unit& unit, int i) const {
    const int group = group_heads.divide(unit.first_head + i * (heads / unit_keys));
    return static_cast<const char*>(from.columns) + (slot * from.groups + group) * key_stride();
  }
};

// In how many copies a unit has its heads' keys: one for each of its groups where the heads of a copy are of one group
// in every unit, otherwise one for each head.
inline int unit_keys_of(int heads, int group_heads) {
  if (group_heads % heads == 0) return 1;
  return heads % group_heads == 0 ? heads / group_heads : heads;
}

// Of a unit: the token's v and beta; of each value head the vectors, and the products of its weighed keys with k and q.
struct ChannelsWindow {
  // Between flushes decay ⊙ k and decay ⊙ q, in a flush the decay, q and k.
  float vector[3][kMaxUnitHeads][kTileColumns];
  UnitToken token;
  float by_k[kMaxUnitHeads][kMaxBufferLen + 4];  // other banks for other heads
  float by_q[kMaxUnitHeads][kMaxBufferLen + 4];
};

// Job: DeltasJob of replay_stream_cuda.cuh.
template <class Job>
class ChannelColumns : public ChannelOperands {
 public:
  static constexpr int kWarps = kMaxUnitHeads;

  // The token's operands for the warp's head, four columns a lane.
  struct Ready : ChannelToken {
    float k_by_q;
  };

  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    ChannelOperands::load(a, unit, unit.first_head + own_head(unit.heads));
  }

  template <class Arguments>
  __device__ __forceinline__ Ready ready(const Arguments& a, ChannelsWindow& /*window*/) const {
    Ready ready;
    this->take(a, ready);
    ready.k_by_q = row_dot(ready.k, ready.q);
    return ready;
  }

  template <class Arguments>
  __device__ static __forceinline__ void prepare(const Arguments& a, const Unit& unit, const Place& place,
                                                 const Ready& ready, char* memory, ChannelsWindow& window) {
    const auto ring = Job::ring_of(a);
    const int h = own_head(unit.heads);
    const bool leads = column_warp() < unit.heads;  // of the head's warps
    const char* keys = ring.keys(memory, h);
    float* gates = reinterpret_cast<float*>(ring.gates(memory, h)) + unit_column();
    const bool flush = place.cursor + 1 == ring.buffer_len;
    if (flush && !leads) return;
    float decay[4];
    if (flush) {
      weigh_keys(keys, gates, place.cursor, ready, decay);
      fence_before_copies();  // the next ring is copied to where the keys are now
    } else {
      multiply_keys(keys, gates, place.cursor, unit.heads, ready, decay, window.by_k[h], window.by_q[h]);
    }
    if (!leads) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) decay[i] = expf(decay[i]);
    if (flush) {
      put(decay, window.vector[0][h] + unit_column());
      put(ready.q, window.vector[1][h] + unit_column());
      put(ready.k, window.vector[2][h] + unit_column());
      return;
    }
    float product[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) product[i] = decay[i] * ready.k[i];
    put(product, window.vector[0][h] + unit_column());
#pragma unroll
    for (int i = 0; i < 4; ++i) product[i] = decay[i] * ready.q[i];
    put(product, window.vector[1][h] + unit_column());
    window.by_q[h][place.cursor] = ready.k_by_q;  // by every lane, the same value
    append(a, unit, place, h, ready);
  }

 private:
  static constexpr int kAtOnce = 4;
  static constexpr Dtype kRing = Job::kRingDtype;

  __device__ static __forceinline__ int own_head(int heads) { return column_warp() & (heads - 1); }

  // The key of entry j and its gates, the lane's columns.
  __device__ static __forceinline__ void load_entry(const char* keys, const float* gates, int j, float (&key)[4],
                                                    float (&gate)[4]) {
    load4<kRing>(keys, j * kTileColumns + unit_column(), key);
    load4<Dtype::float32>(gates, j * kTileColumns, gate);
  }

  // Calls use(newest, key, gate) for kAtOnce of the ring's first `count` entries at a time, the newest first, each row
  // of `key` and `gate` an entry older; of those past the oldest it has that one again. all: the token's gates.
  template <class Use>
  __device__ static __forceinline__ void for_keys(const char* keys, const float* gates, int count, const Ready& ready,
                                                  float (&all)[4], const Use& use) {
#pragma unroll
    for (int i = 0; i < 4; ++i) all[i] = 0.0F + ready.log_decay[i];
#pragma unroll 1
    for (int newest = count - 1; newest >= 0; newest -= kAtOnce) {
      float key[kAtOnce][4];
      float gate[kAtOnce][4];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) load_entry(keys, gates, max(newest - r, 0), key[r], gate[r]);
      use(newest, key, gate);
    }
  }

  // As window_cuda.cuh's weigh(): the keys of the ring's first `count` entries, weighed by all decays after them, take
  // the gates' place. all: the sum of all gates.
  __device__ static __forceinline__ void weigh_keys(const char* keys, float* gates, int count, const Ready& ready,
                                                    float (&all)[4]) {
    for_keys(keys, gates, count, ready, all, [&](int newest, auto& key, const auto& gate) {
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        if (newest - r < 0) break;
        weigh(key[r], gate[r], all);
        put(key[r], gates + (newest - r) * kTileColumns);
      }
    });
  }

  // by_k, by_q: their products with k and q; each of a head's warps has some of the entries.
  __device__ static __forceinline__ void multiply_keys(const char* keys, const float* gates, int count, int heads,
                                                       const Ready& ready, float (&all)[4], float* by_k, float* by_q) {
    const int warps = kWarps / heads;
    int turn = column_warp() / heads;  // at 0 it is this warp's
    const float k[1][4] = {{ready.k[0], ready.k[1], ready.k[2], ready.k[3]}};
    const float q[1][4] = {{ready.q[0], ready.q[1], ready.q[2], ready.q[3]}};
    for_keys(keys, gates, count, ready, all, [&](int newest, auto& key, const auto& gate) {
      const bool mine = turn == 0;
      turn = mine ? warps - 1 : turn - 1;
      if (!mine) {
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) {
          if (newest - r < 0) break;
#pragma unroll
          for (int i = 0; i < 4; ++i) all[i] = all[i] + gate[r][i];
        }
        return;
      }
      float sums[2 * kAtOnce];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        if (newest - r >= 0) weigh(key[r], gate[r], all);
        sums[r] = dot_share(key[r], k);
        sums[kAtOnce + r] = dot_share(key[r], q);
      }
      const float sum = fold_all<2 * kAtOnce>(sums);
      const int index = static_cast<int>(threadIdx.x) % 32 / (32 / (2 * kAtOnce));
      const int entry = newest - index % kAtOnce;
      if (entry >= 0) (index < kAtOnce ? by_k : by_q)[entry] = sum;  // by the lanes that have it, the same value
    });
  }

  // key <- exp(after) ⊙ key; `after` then goes on to the entry before.
  __device__ static __forceinline__ void weigh(float (&key)[4], const float (&gate)[4], float (&after)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      key[i] = expf(after[i]) * key[i];
      after[i] = after[i] + gate[i];
    }
  }

  // The token becomes the ring's entry `cursor`, but for d.
  template <class Arguments>
  __device__ static __forceinline__ void append(const Arguments& a, const Unit& unit, const Place& place, int h,
                                                const Ready& ready) {
    const auto L = static_cast<int>(a.form.buffer_len);
    const std::int64_t slot = place.slot;
    const int head = unit.first_head + h;
    store4<Dtype::float32>(a.ring.log_decay,
                           ((slot * a.shape.num_value_heads + head) * L + place.cursor) * kTileColumns + unit_column(),
                           ready.log_decay);
    const int group = a.group_heads.divide(head);
    if (head != group * static_cast<int>(a.group_heads.by)) return;  // another head's warp does the rest
    store4<kRing>(a.ring.k, ((slot * a.shape.num_key_heads + group) * L + place.cursor) * kTileColumns + unit_column(),
                  ready.k);
  }
};

// v and beta.
class ChannelRows : public RowOperandsOf<true> {
 public:
  struct Ready {};
  template <class Arguments>
  __device__ __forceinline__ Ready ready(const Arguments& a, ChannelsWindow& window) const {
    this->take(a, window.token);
    return {};
  }
  template <class Arguments>
  __device__ static __forceinline__ void prepare(const Arguments& /*a*/, const Unit& /*unit*/, const Place& /*place*/,
                                                 const Ready& /*ready*/, const char* /*memory*/,
                                                 ChannelsWindow& /*window*/) {}
};

}  // namespace replayeval::delta_rule::cuda
