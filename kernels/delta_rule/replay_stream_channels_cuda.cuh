// What the preparing warps of replay_stream_cuda.cuh do where each key channel has a decay: each head weighs a group's
// keys in its own way, so its products with k and q are its own too. Four warps share a unit's heads and their entries.
#pragma once

#include "kernels/delta_rule/stream_cuda.cuh"
#include "kernels/stream_ring_cuda.cuh"

namespace replayeval::delta_rule::cuda {

// Of a unit: the token; of each value head what its checkpoint is multiplied by, and the products of its weighed keys
// with k and q.
struct ChannelsWindow {
  float k[kTileColumns], q[kTileColumns];
  UnitToken token;                               // but for the log decay
  float from_k[kMaxUnitHeads][kTileColumns];     // decay ⊙ k; of a flush the decay itself
  float from_q[kMaxUnitHeads][kTileColumns];     // decay ⊙ q
  float by_k[kMaxUnitHeads][kMaxBufferLen + 4];  // other banks for other heads
  float by_q[kMaxUnitHeads][kMaxBufferLen + 4];
};

// Job: DeltasJob of replay_stream_cuda.cuh.
template <class Job>
class ChannelColumns : public ColumnOperands {
 public:
  static constexpr int kWarps = kMaxUnitHeads;

  // The token's operands for the warp's head, four columns a lane.
  struct Ready {
    float k[4], q[4], log_decay[4];
    float k_by_q;
  };

  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    ColumnOperands::load(a, unit);
    const int head = unit.first_head + own_head(unit.heads);
    const std::int64_t row = unit.row;
    f_.load(a.in.f, row * a.in.f_stride + head * kTileColumns + unit_column(), a.in.dtype, a.fours);
    A_log_ = a.parameters.A_log[head];
    bias_.load(a.parameters.dt_bias, head * kTileColumns + unit_column(), Dtype::float32, a.bias_in_fours);
  }

  template <class Arguments>
  __device__ __forceinline__ Ready ready(const Arguments& a, ChannelsWindow& window) const {
    float q[1][4];
    float k[1][4];
    float f[4];
    float bias[4];
    Ready ready;
    this->take(a, q, k);
    if (column_warp() == 0) {
      put(k[0], window.k + unit_column());
      put(q[0], window.q + unit_column());
    }
    f_.decode(a.in.dtype, a.fours, f);
    bias_.decode(Dtype::float32, a.bias_in_fours, bias);
    const float rate = expf(A_log_);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      ready.k[i] = k[0][i];
      ready.q[i] = q[0][i];
      ready.log_decay[i] = log_decay_of(f[i], bias[i], rate, a.parameters, a.in.dtype);
    }
    ready.k_by_q = row_dot(k[0], q[0]);
    return ready;
  }

  template <class Arguments>
  __device__ static __forceinline__ void prepare(const Arguments& a, const Unit& unit, const Place& place,
                                                 const Ready& ready, char* memory, ChannelsWindow& window) {
    const auto ring = Job::ring_of(a);
    const int h = own_head(unit.heads);
    const bool leads = column_warp() < unit.heads;  // of the head's warps
    float* gates = ring.scalars(memory) + h * ring.buffer_len * kTileColumns + unit_column();
    const bool flush = place.cursor + 1 == ring.buffer_len;
    if (flush && !leads) return;
    float decay[4];
    if (flush) {
      weigh_keys(memory, gates, place.cursor, ready, decay);
      fence_before_copies();  // the next ring is copied to where the keys are now
    } else {
      multiply_keys(memory, gates, place.cursor, unit.heads, ready, decay, window.by_k[h], window.by_q[h]);
    }
    if (!leads) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) decay[i] = expf(decay[i]);
    if (flush) return put(decay, window.from_k[h] + unit_column());
    float product[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) product[i] = decay[i] * ready.k[i];
    put(product, window.from_k[h] + unit_column());
#pragma unroll
    for (int i = 0; i < 4; ++i) product[i] = decay[i] * ready.q[i];
    put(product, window.from_q[h] + unit_column());
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

  // As window_cuda.cuh's weigh(): the keys of the ring's first `count` entries, weighed by all decays after them, take
  // the gates' place. all: the sum of all gates.
  __device__ static __forceinline__ void weigh_keys(const char* keys, float* gates, int count, const Ready& ready,
                                                    float (&all)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) all[i] = 0.0F + ready.log_decay[i];
#pragma unroll 1
    for (int newest = count - 1; newest >= 0; newest -= kAtOnce) {
      float key[kAtOnce][4];
      float gate[kAtOnce][4];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) load_entry(keys, gates, max(newest - r, 0), key[r], gate[r]);
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        if (newest - r < 0) break;
        weigh(key[r], gate[r], all);
        put(key[r], gates + (newest - r) * kTileColumns);
      }
    }
  }

  // by_k, by_q: their products with k and q; each of a head's warps has some of the entries.
  __device__ static __forceinline__ void multiply_keys(const char* keys, const float* gates, int count, int heads,
                                                       const Ready& ready, float (&all)[4], float* by_k, float* by_q) {
    const int warps = kWarps / heads;
    int turn = column_warp() / heads;  // at 0 it is this warp's
    const float k[1][4] = {{ready.k[0], ready.k[1], ready.k[2], ready.k[3]}};
    const float q[1][4] = {{ready.q[0], ready.q[1], ready.q[2], ready.q[3]}};
#pragma unroll
    for (int i = 0; i < 4; ++i) all[i] = 0.0F + ready.log_decay[i];
#pragma unroll 1
    for (int newest = count - 1; newest >= 0; newest -= kAtOnce) {
      float key[kAtOnce][4];
      float gate[kAtOnce][4];
      const bool mine = turn == 0;
      turn = mine ? warps - 1 : turn - 1;
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) load_entry(keys, gates, max(newest - r, 0), key[r], gate[r]);
      if (!mine) {
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) {
          if (newest - r < 0) break;
#pragma unroll
          for (int i = 0; i < 4; ++i) all[i] = all[i] + gate[r][i];
        }
        continue;
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
    }
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
    const std::int64_t head = static_cast<std::int64_t>(place.slot) * a.shape.num_value_heads + unit.first_head + h;
    store4<Dtype::float32>(a.ring.log_decay, (head * L + place.cursor) * kTileColumns + unit_column(), ready.log_decay);
    if (!unit.leads_group || column_warp() != 0) return;
    const std::int64_t group = static_cast<std::int64_t>(place.slot) * a.shape.num_key_heads + unit.group;
    store4<kRing>(a.ring.k, (group * L + place.cursor) * kTileColumns + unit_column(), ready.k);
  }

  RawFour f_, bias_;
  float A_log_;
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
