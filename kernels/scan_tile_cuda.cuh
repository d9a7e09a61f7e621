// Sixteen rows of a state of 128 columns in one warp's registers over a block of tokens. A lane has 4 rows x 16 columns
// where Tile128 has 8 x 4, so that a token costs few loads and exchanges. Every sum runs as Tile128's does.
//
// Lane 4 q + t has the quads q, q + 8, q + 16 and q + 24 of columns: those that the first two of fold()'s exchanges
// bring together. Its register r has row 8 (p / 2) + 2 t + p % 2 with p = r ^ (lane / 8): in each exchange that
// is left a lane keeps its first rows and gives its last, no selection needed.
#pragma once

#include "kernels/entry_products_cuda.cuh"
#include "kernels/tile_cuda.cuh"

#include <cstdint>
#include <type_traits>

namespace replayeval::cuda {

inline constexpr int kScanColumns = 128;
static_assert(kScanColumns == Tile128<true>::kMaxStateSize);

struct ScanTile {
  static constexpr int kColumns = kScanColumns;
  static constexpr int kRows = 4;   // of a lane
  static constexpr int kQuads = 4;  // of columns, of a lane
  static constexpr int kWarpRows = 16;

  float s[kRows][kQuads][4];

  __device__ static __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  // Of the lane's k-th quad.
  __device__ static __forceinline__ int column_of(int k) { return lane() / 4 * 4 + 32 * k; }
  // Of register r, among the warp's.
  __device__ static __forceinline__ int row_of(int r) {
    const int p = r ^ (lane() / 8);
    return p / 2 * 8 + lane() % 4 * 2 + p % 2;
  }
  // The row whose sum dot() leaves in this lane, and whether this lane is the one to write it.
  __device__ static __forceinline__ int own_row() { return row_of(0); }
  __device__ static __forceinline__ bool writes_row() { return lane() / 4 % 2 == 0; }

  // first_row: the warp's, of all rows in `state`.
  template <Dtype kState>
  __device__ __forceinline__ void load(const void* state, std::int64_t first_row) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
        load4<kState>(state, (first_row + row_of(r)) * kColumns + column_of(k), s[r][k]);
      }
    }
  }
  // Of values that are rounded already.
  template <Dtype kState>
  __device__ __forceinline__ void store(void* state, std::int64_t first_row) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
        Packed4<kState> packed;
        packed.pack(s[r][k]);
        packed.store(state, (first_row + row_of(r)) * kColumns + column_of(k));
      }
    }
  }

  __device__ __forceinline__ void multiply(float by) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[r][k][i] = by * s[r][k][i];
      }
    }
  }

  // Columns lie in shared memory with the two of a pair exchanged: registers come from there in quads, and so those
  // that meet a column of the state are in the other one of the two banks of registers.
  __device__ static __forceinline__ void load_columns(const float* from, int column, float (&to)[4]) {
    float swapped[4];
    load4<Dtype::float32>(from, column, swapped);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = swapped[i ^ 1];
  }
  __device__ static __forceinline__ void store_columns(float* to, int column, const float (&from)[4]) {
    const float swapped[4] = {from[1], from[0], from[3], from[2]};
    store4<Dtype::float32>(to, column, swapped);
  }

  // Column c times by[c]; `by` in shared memory, as store_columns() leaves it, like all columns below.
  __device__ __forceinline__ void multiply_columns(const float* by) {
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      float b[4];
      load_columns(by, column_of(k), b);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[r][k][i] = b[i] * s[r][k][i];
      }
    }
  }

  // S += (weight x) B^T; x points at the warp's rows, B at column 0, both in shared memory.
  __device__ __forceinline__ void add_outer(float weight, const float* x, const float* B) {
    float factor[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) factor[r] = weight * x[row_of(r)];
    add_outer(factor, B);
  }

  // S += factor B^T with this lane's rows of the factor.
  __device__ __forceinline__ void add_outer(const float (&factor)[kRows], const float* B) {
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      float b[4];
      load_columns(B, column_of(k), b);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[r][k][i] = fmaf(factor[r], b[i], s[r][k][i]);
      }
    }
  }

  // This lane's shares of S C for its rows, C in shared memory.
  __device__ __forceinline__ void dot(const float* C, float (&shares)[kRows]) const {
    float pair[2][kRows];  // of quads q and q + 16; q + 8 and q + 24
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int far = 0; far < 2; ++far) {
        const int k = half + 2 * far;
        float c[4];
        load_columns(C, column_of(k), c);
        float sum[kRows] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int r = 0; r < kRows; ++r) sum[r] = fmaf(c[i], s[r][k][i], sum[r]);
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) pair[half][r] = far == 0 ? sum[r] : pair[half][r] + sum[r];
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) shares[r] = pair[0][r] + pair[1][r];
  }
  // From the lanes' shares the sum of own_row(); all lanes of the warp take part. The exchanges take long: better done
  // among other work.
  __device__ static __forceinline__ float fold_shares(float (&shares)[kRows]) {
    shares[0] = shares[0] + __shfl_xor_sync(0xFFFFFFFFU, shares[2], 16);
    shares[1] = shares[1] + __shfl_xor_sync(0xFFFFFFFFU, shares[3], 16);
    shares[0] = shares[0] + __shfl_xor_sync(0xFFFFFFFFU, shares[1], 8);
    return shares[0] + __shfl_xor_sync(0xFFFFFFFFU, shares[0], 4);
  }

  // From each lane's value of own_row() those of its rows. All lanes of the warp take part.
  __device__ static __forceinline__ void spread(float own, float (&to)[kRows]) {
    to[0] = own;
#pragma unroll
    for (int r = 1; r < kRows; ++r) to[r] = __shfl_xor_sync(0xFFFFFFFFU, own, 8 * r);
  }

  // Whether a token stays within what count_float32() allows for: by its decay, a row's factor, a column's.
  __device__ static __forceinline__ bool regular_decay(float decay) { return decay >= 0x1p-30F; }
  __device__ static __forceinline__ bool regular_factor(float value) {
    return value == 0.0F || fabsf(value) >= 0x1p-50F;
  }
  // Of columns: whether the least of their ranks is, each |value| as bits, one less so that zero is the largest.
  __device__ static __forceinline__ std::uint32_t column_rank(float value) {
    return __float_as_uint(fabsf(value)) - 1U;
  }
  __device__ static __forceinline__ bool regular_columns(std::uint32_t least) {
    constexpr std::uint32_t kLeast = 0x30800000U;  // the bits of 2^-30
    return least >= kLeast - 1U;
  }

  // What a store and a load would leave, counted. `shares`: dot() of these values. Of float32 only the counting is
  // left: kLook, `settled` and `regular` are those of count_float32().
  // kAtOnce: rows of a lane in 16 bits, the fewer the fewer registers.
  template <Dtype kState, bool kLook, int kAtOnce>
  __device__ __forceinline__ void round(bool saturate, const float (&shares)[kRows], bool regular, bool& settled,
                                        ThreadCounts& counts) {
    if constexpr (kState == Dtype::float32) {
      count_float32<kLook>(shares, regular, settled, counts);
    } else {
#pragma unroll
      for (int r = 0; r < kRows; r += kAtOnce) round_halves<kState, kAtOnce>(r, saturate, counts);
    }
  }

  // S <- scale S + sum_{j < count} (weights[j weight_stride] x_j) B_j^T as add_entries_together() does it: the same
  // products, though each has other columns of the tile. x: the warp's rows, x_stride apart; B: entries of kColumns
  // that hold what bfloat16 does; all in shared memory.
  __device__ __forceinline__ void add_together(float scale, const float* weights, int weight_stride, const float* x,
                                               int x_stride, const float* B, int count) {
    const auto factor = [&](int j, int row) {
      return j < count ? weights[j * weight_stride] * x[j * x_stride + row] : 0.0F;
    };
    Factors first;
    first.take(0, factor);
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* const columns = B + column_of(k) + 2 * half;
        float sums[2][4] = {};  // of two columns, of eight rows each
        add_products(sums, columns, 0, count, first);
#pragma unroll 1
        for (int entry = kChunkEntries; entry < count; entry += kChunkEntries) {
          Factors more;
          more.take(entry, factor);
          add_products(sums, columns, entry, count, more);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float sum[kRows];
#pragma unroll
          for (int p = 0; p < kRows; ++p) sum[p] = sums[p / 2][i * 2 + p % 2];
          order_rows(sum);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            float& value = s[r][k][2 * half + i];
            value = fmaf(scale, value, sum[r]);
          }
        }
      }
    }
  }

 private:
  // A chunk's factors for the products, each cut into three parts.
  struct Factors {
    FactorParts of[2];

    template <class Factor>
    __device__ __forceinline__ void take(int first_entry, const Factor& factor) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        of[n].take([&](int j, int row) { return factor(first_entry + j, 8 * n + row); });
      }
    }
  };

  // columns: two of this lane's, of entry 0.
  __device__ static __forceinline__ void add_products(float (&sums)[2][4], const float* columns, int first_entry,
                                                      int count, const Factors& factors) {
    std::uint32_t of[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int entry = first_entry + entry_of(lane() % 4, e);
      float2 pair = make_float2(0.0F, 0.0F);
      if (entry < count) pair = *reinterpret_cast<const float2*>(columns + entry * kColumns);
      of[e] = upper_halves(pair.y, pair.x);  // exchanged: see store_columns()
    }
    const uint4 chunk = lane_columns(of);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
#pragma unroll
      for (int p = 2; p >= 0; --p) {
        multiply_add(sums[n], chunk, factors.of[n].part[p][0], factors.of[n].part[p][1]);
      }
    }
  }

  // From the products' order of rows to the registers'.
  __device__ static __forceinline__ void order_rows(float (&value)[kRows]) {
    const auto exchange = [](bool swapped, float& a, float& b) {
      const float first = a;
      a = swapped ? b : first;
      b = swapped ? first : b;
    };
    exchange((lane() & 8) != 0, value[0], value[1]);
    exchange((lane() & 8) != 0, value[2], value[3]);
    exchange((lane() & 16) != 0, value[0], value[2]);
    exchange((lane() & 16) != 0, value[1], value[3]);
  }

  // A lane that has a value that is not finite has such a share. Subnormal values are looked for where kLook, every
  // second token, or where it must be: `settled` says that after the last token all of the lane's were at least 2^-63,
  // `regular` that this one's parts were. Then a decayed value is a multiple of 2^-116 and a product added to it
  // one of 2^-126, so their sum is zero or no less.
  template <bool kLook>
  __device__ __forceinline__ void count_float32(const float (&shares)[kRows], bool regular, bool& settled,
                                                ThreadCounts& counts) const {
    float most = fabsf(shares[0]);
#pragma unroll
    for (int r = 1; r < kRows; ++r) most = larger_or_nan(most, fabsf(shares[r]));
    const bool finite = most <= max_finite<Dtype::float32>();
    if constexpr (kLook) {
      const bool all_large = least() >= 0x1p-63F;  // worked out among the products, not after a branch
      settled = finite & all_large;
      if (settled) return;
    } else {
      if (finite && settled && regular) return;
      settled = false;
    }
    count_stores<Dtype::float32, kRows>(0, false, counts);
  }
  __device__ static __forceinline__ float larger_or_nan(float a, float b) {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
  }

  template <int kAtOnce>
  using Packed = std::uint32_t[kAtOnce][kQuads][2];  // pairs as stored in 16 bits

  // Rows from `first` on.
  template <Dtype kState, int kAtOnce>
  __device__ __forceinline__ void round_halves(int first, bool saturate, ThreadCounts& counts) {
    Packed<kAtOnce> packed;
    pack<kState>(first, packed);
    if (has_rare<kState>(packed)) {
      count_stores<kState, kAtOnce>(first, saturate, counts);
      if (saturate) {
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
          for (int k = 0; k < kQuads; ++k) {
#pragma unroll
            for (int i = 0; i < 4; ++i) s[first + r][k][i] = saturated<kState>(s[first + r][k][i]);
          }
        }
        pack<kState>(first, packed);
      }
    } else if (kState == Dtype::float16) {
      counts.subnormal += subnormal_halves(packed);
    }
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          s[first + r][k][2 * i] = decode<kState>(packed[r][k][i] & 0xFFFFU);
          s[first + r][k][2 * i + 1] = decode<kState>(packed[r][k][i] >> 16);
        }
      }
    }
  }

  template <Dtype kState, int kAtOnce>
  __device__ __forceinline__ void pack(int first, std::uint32_t (&to)[kAtOnce][kQuads][2]) const {
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          to[r][k][i] = encode_pair<kState>(s[first + r][k][2 * i], s[first + r][k][2 * i + 1]);
        }
      }
    }
  }

  __device__ __forceinline__ float least() const {
    float of_row[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      of_row[r] = fabsf(s[r][0][0]);
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) of_row[r] = fminf(of_row[r], fabsf(s[r][k][i]));
      }
    }
    float least = of_row[0];
#pragma unroll
    for (int r = 1; r < kRows; ++r) least = fminf(least, of_row[r]);
    return least;
  }

  // Of pairs as stored: whether a value is as large as the largest, or NaN; of bfloat16 also if one is subnormal or
  // zero.
  template <Dtype kState, int kAtOnce>
  __device__ static __forceinline__ bool has_rare(const std::uint32_t (&packed)[kAtOnce][kQuads][2]) {
    using Pair = std::conditional_t<kState == Dtype::bfloat16, __nv_bfloat162, __half2>;
    Pair most = __habs2(reinterpret_cast<const Pair&>(packed[0][0][0]));
    Pair least = most;
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const Pair pair = __habs2(reinterpret_cast<const Pair&>(packed[r][k][i]));
          most = __hmax2_nan(most, pair);
          if (kState == Dtype::bfloat16) least = __hmin2(least, pair);
        }
      }
    }
    const auto high = reinterpret_cast<const std::uint32_t&>(most);
    const auto low = reinterpret_cast<const std::uint32_t&>(least);
    constexpr std::uint32_t kMost = kState == Dtype::bfloat16 ? 0x7F7FU : 0x7BFFU;  // the largest number's bits
    const bool large = (high & 0xFFFFU) >= kMost || (high >> 16) >= kMost;
    return large || (kState == Dtype::bfloat16 && ((low & 0xFFFFU) < 0x80U || (low >> 16) < 0x80U));
  }

  template <int kAtOnce>
  __device__ static __forceinline__ std::uint32_t subnormal_halves(const std::uint32_t (&packed)[kAtOnce][kQuads][2]) {
    const __half2 smallest_normal = __float2half2_rn(0x1p-14F);
    const __half2 zero = __float2half2_rn(0.0F);
    __half2 count = zero;
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const __half2 pair = __habs2(reinterpret_cast<const __half2&>(packed[r][k][i]));
          count = __hfma2(__hlt2(pair, smallest_normal), __hne2(pair, zero), count);
        }
      }
    }
    return static_cast<std::uint32_t>(__low2float(count) + __high2float(count));
  }

  template <Dtype kState, int kAtOnce>
  __device__ __forceinline__ void count_stores(int first, bool saturate, ThreadCounts& counts) const {
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int k = 0; k < kQuads; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) count<kState>(s[first + r][k][i], saturate, counts);
      }
    }
  }
};

// c_t · b_j for two rows of each, in Tile128's order of sums, by eight lanes side by side: the lanes 2 e and 2 e + 1 of
// them get that of c's row e / 2 and b's row e % 2. Rows of 128 columns in shared memory as ScanTile has them.
__device__ __forceinline__ float dot_two_by_two(const float* c, const float* b) {
  constexpr int kColumns = kScanColumns;
  const int column = static_cast<int>(threadIdx.x) % 8 * 4;
  float pair[2][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int far = 0; far < 2; ++far) {
      const int at = column + 32 * (half + 2 * far);
      float rows_c[2][4];
      float rows_b[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        ScanTile::load_columns(c, i * kColumns + at, rows_c[i]);
        ScanTile::load_columns(b, i * kColumns + at, rows_b[i]);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float sum = 0.0F;
#pragma unroll
        for (int i = 0; i < 4; ++i) sum = fmaf(rows_b[e % 2][i], rows_c[e / 2][i], sum);
        pair[half][e] = far == 0 ? sum : pair[half][e] + sum;
      }
    }
  }
  float sum[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) sum[e] = pair[0][e] + pair[1][e];
  return fold<8>(sum);
}

}  // namespace replayeval::cuda
