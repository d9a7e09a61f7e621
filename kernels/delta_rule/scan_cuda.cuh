// What the delta rule's kernels for blocks of tokens share: a chunk of tokens' operands, made ready for the recurrence,
// columns as ScanTile::store_columns() leaves them.
#pragma once

#include "kernels/delta_rule/launch_cuda.cuh"
#include "kernels/delta_rule/normalise_cuda.cuh"
#include "kernels/delta_rule/scalars_cuda.cuh"
#include "kernels/scan_cuda.cuh"

namespace replayeval::delta_rule::cuda {

// Whether a call's operands can be read four elements at a time.
inline bool scans_fours(const Inputs& in) {
  return lies_in_fours(in.q, in.q_stride, in.dtype) && lies_in_fours(in.k, in.k_stride, in.dtype) &&
         lies_in_fours(in.v, in.v_stride, in.dtype) && lies_in_fours(in.f, in.f_stride, in.dtype);
}

// kChannels: a decay for each key channel; the block then has one head.
template <bool kChannels>
class ScanOperands {
 public:
  float* q;      // [capacity, 128], normalised and scaled
  float* k;      // [capacity, 128], normalised
  float* v;      // [capacity, kMostRows]
  float* decay;  // [capacity, 128]: kChannels only

  // memory: bytes(), aligned to 16. fours: scans_fours().
  __device__ __forceinline__ ScanOperands(char* memory, int capacity, const ScanRows& r, const Inputs& in, bool fours)
      : q(reinterpret_cast<float*>(memory)),
        k(q + capacity * kScanColumns),
        v(k + capacity * kScanColumns),
        decay(v + capacity * kMostRows),
        stage_(reinterpret_cast<char*>(decay + kGates * capacity * kScanColumns),
               {{in.q, in.q_stride, r.group * kScanColumns, kScanColumns},
                {in.k, in.k_stride, r.group * kScanColumns, kScanColumns},
                {in.v, in.v_stride, r.first_row, r.rows},
                {in.f, in.f_stride, r.first_head * kScanColumns, kGates * kScanColumns}},
               in.dtype, fours),
        dtype_(in.dtype),
        rows_(r.rows),
        head_(r.first_head) {}
  __host__ __device__ static std::size_t bytes(int capacity, int rows, Dtype dtype) {
    const int columns = (2 + kGates) * kScanColumns;
    return static_cast<std::size_t>(capacity * (columns + kMostRows)) * sizeof(float) +
           ScanStage<4>::bytes(capacity, columns + rows, dtype);
  }

  // Has `count` tokens from `token` on copied.
  __device__ __forceinline__ void fetch(std::int64_t token, int count) const { stage_.fetch(token, count); }

  // They become the chunk's; others see them after __syncthreads(). Calls see(t, k, decay) with this lane's four
  // elements of the tokens that its warp has; all lanes of the warp take part.
  template <class See>
  __device__ __forceinline__ void take(std::int64_t token, int count, const Parameters& p, const See& see) const {
    const int element = ScanStage<4>::element();
    stage_.take(token, count, [&](int t, float(&values)[4][4]) {
      float(&own_q)[1][4] = *reinterpret_cast<float(*)[1][4]>(&values[0]);
      float(&own_k)[1][4] = *reinterpret_cast<float(*)[1][4]>(&values[1]);
      normalise_rows(p, dtype_, kScanColumns, own_q, own_k);
      multiply_row(own_q, 1.0F / sqrtf(static_cast<float>(kScanColumns)));
      ScanTile::store_columns(q, t * kScanColumns + element, own_q[0]);
      ScanTile::store_columns(k, t * kScanColumns + element, own_k[0]);
      if (element < rows_) store4<Dtype::float32>(v, t * kMostRows + element, values[2]);
      if constexpr (kChannels) {
        const float rate = expf(p.A_log[head_]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float bias = p.dt_bias[head_ * kScanColumns + element + i];
          values[3][i] = expf(log_decay_of(values[3][i], bias, rate, p, dtype_));
        }
        ScanTile::store_columns(decay, t * kScanColumns + element, values[3]);
      }
      see(t, own_k[0], values[3]);
    });
  }

 private:
  static constexpr int kGates = kChannels ? 1 : 0;

  ScanStage<4> stage_;
  Dtype dtype_;
  int rows_, head_;
};

// beta of a chunk of tokens in each of the block's heads and, if not kChannels, its decay.
template <bool kChannels>
class ScanGates : public ScanPlace {
 public:
  using ScanPlace::ScanPlace;

  __device__ __forceinline__ void fetch(const Inputs& in, const ScanRows& r, std::int64_t token, int count) {
    if (!has_one(r, count)) return;
    beta_.load(in.b, (token + place()) * in.b_stride + r.first_head + head(), in.dtype);
    if (!kChannels) decay_.load(in.f, (token + place()) * in.f_stride + r.first_head + head(), in.dtype);
  }
  __device__ __forceinline__ float beta(const Inputs& in, const Parameters& p) const {
    return beta_of(beta_.decode(in.dtype), p, in.dtype);
  }
  __device__ __forceinline__ float decay(const Inputs& in, const Parameters& p, const ScanRows& r) const {
    const int head = r.first_head + this->head();
    return expf(log_decay_of(decay_.decode(in.dtype), p.dt_bias[head], expf(p.A_log[head]), p, in.dtype));
  }

 private:
  RawElement beta_{}, decay_{};
};

}  // namespace replayeval::delta_rule::cuda
