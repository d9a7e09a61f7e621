// What Mamba-2's kernels for blocks of tokens share, exact and replay: a chunk of tokens' operands.
#pragma once

#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/scan_cuda.cuh"

namespace replayeval::mamba2::cuda {

// x, B and C of a chunk of tokens in shared memory as float32, columns as ScanTile::store_columns() leaves them.
class ScanOperands {
 public:
  float* B;  // [capacity, 128]
  float* C;  // [capacity, 128]
  float* x;  // [capacity, kMostRows]

  // memory: bytes(), aligned to 16. fours: reads_fours().
  __device__ __forceinline__ ScanOperands(char* memory, int capacity, const ScanRows& r, const Inputs& in, bool fours)
      : B(reinterpret_cast<float*>(memory)),
        C(B + capacity * kScanColumns),
        x(C + capacity * kScanColumns),
        stage_(reinterpret_cast<char*>(x + capacity * kMostRows),
               {{in.B, in.B_stride, r.group * kScanColumns, kScanColumns},
                {in.C, in.C_stride, r.group * kScanColumns, kScanColumns},
                {in.x, in.x_stride, r.first_row, r.rows}},
               in.dtype, fours),
        rows_(r.rows) {}
  __host__ __device__ static std::size_t bytes(int capacity, int rows, Dtype dtype) {
    return static_cast<std::size_t>(capacity) * (2 * kScanColumns + kMostRows) * sizeof(float) +
           ScanStage<3>::bytes(capacity, 2 * kScanColumns + rows, dtype);
  }

  // Has `count` tokens from `token` on copied.
  __device__ __forceinline__ void fetch(std::int64_t token, int count) const { stage_.fetch(token, count); }

  // They become those of the chunk from `position` on; others see them after __syncthreads(). Calls see(t, values) for
  // this lane's four elements of B, C and x of the tokens that its warp has; all lanes of the warp take part.
  template <class See>
  __device__ __forceinline__ void take(std::int64_t token, int count, int position, const See& see) const {
    const int element = ScanStage<3>::element();
    stage_.take(token, count, [&](int t, const float(&values)[3][4]) {
      ScanTile::store_columns(B, (position + t) * kScanColumns + element, values[0]);
      ScanTile::store_columns(C, (position + t) * kScanColumns + element, values[1]);
      if (element < rows_) store4<Dtype::float32>(x, (position + t) * kMostRows + element, values[2]);
      see(t, values);
    });
  }

 private:
  ScanStage<3> stage_;
  int rows_;
};

// y of the warp's rows and `count` tokens from `token` on. sums: [count, 16], all of it but D x; x: of these tokens, at
// the warp's rows. fours: writes_fours().
__device__ __forceinline__ void write_y(const Output& out, bool fours, const ScanRows& r, float D, const float* sums,
                                        const float* x, std::int64_t token, int count) {
  write_rows(out, fours, r, sums, token, count, [&](int t, int row, float(&y)[4]) {
    float own_x[4];
    load4<Dtype::float32>(x, t * kMostRows + row, own_x);
#pragma unroll
    for (int i = 0; i < 4; ++i) y[i] = fmaf(D, own_x[i], y[i]);
  });
}

// dt of a chunk of tokens in each of the block's heads.
class ScanTimeSteps : public ScanPlace {
 public:
  using ScanPlace::ScanPlace;

  __device__ __forceinline__ void fetch(const Inputs& in, const ScanRows& r, std::int64_t token, int count) {
    if (has_one(r, count)) raw_.load(in.dt, (token + place()) * in.dt_stride + r.first_head + head(), in.dtype);
  }
  __device__ __forceinline__ float take(const Inputs& in, const Parameters& parameters, const ScanRows& r) const {
    return time_step(raw_.decode(in.dtype), parameters.dt_bias[r.first_head + head()], parameters.dt_min,
                     parameters.dt_max);
  }

 private:
  RawElement raw_{};
};

}  // namespace replayeval::mamba2::cuda
