// Rows of bfloat16, a stored state's or a ring's, times two float32 vectors, on tensor cores. The vectors are cut into
// three bfloat16 parts that add up to them exactly, so every product is exact, and the sums are kept in float32 (which
// tensor cores do not round to nearest). Where a row or a vector holds an infinity products are NaN.
//
// One product has 16 rows (M), the two vectors' parts (N: part p of vector v is 2 p + v, the last two are empty) and 16
// columns (K), which are chosen so that a lane's share of a row comes in 16-byte words. A sum over a row runs over the
// columns in one order wherever the row stands, and the parts' sums are added pairwise, far lanes first.
#pragma once

#include "kernels/entry_products_cuda.cuh"

namespace replayeval::cuda {

// Whether rows of a state are read so: where step and block kernels both ask this, their bits agree.
template <class T, Dtype kState>
inline constexpr bool kReadsProducts = std::is_same_v<T, ProductTile>&& kState == Dtype::bfloat16;

inline constexpr int kRowBytes = ProductTile::kMaxStateSize * 2;
inline constexpr int kRowWords = 4;  // of 16 bytes, of a row's share

// The two vectors in shared memory, cut into parts, as the products' lanes take them: word m of lane 4 (2 p + v) + t
// has the columns 8 (4 m + t) and the seven after it.
struct VectorParts {
  static constexpr int kVectors = 2;
  static constexpr int kParts = 3;
  static constexpr int kLanes = 4 * kVectors * kParts;
  uint4 of[kRowWords][kLanes];

  // Vector v, by one warp, each lane with its four columns of the Tile.
  __device__ __forceinline__ void put(int v, const float (&x)[4]) {
    float rest[4] = {x[0], x[1], x[2], x[3]};
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      *quad(p, v) = make_uint2(upper_halves(rest[0], rest[1]), upper_halves(rest[2], rest[3]));
#pragma unroll
      for (float& value : rest) value = value - __uint_as_float(__float_as_uint(value) & 0xFFFF0000U);
    }
  }
  // The lane's four columns of vector v again: to add up the parts is exact.
  __device__ __forceinline__ void get(int v, float (&x)[4]) const {
    x[0] = x[1] = x[2] = x[3] = 0.0F;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      Packed4<Dtype::bfloat16> part;
      part.bits = *const_cast<VectorParts*>(this)->quad(p, v);
      float values[4];
      part.unpack(values);
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = p == 0 ? values[i] : x[i] + values[i];
    }
  }

 private:
  __device__ __forceinline__ uint2* quad(int p, int v) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return reinterpret_cast<uint2*>(&of[lane / 8][4 * (kVectors * p + v) + lane % 8 / 2]) + lane % 2;
  }
};

// Word m of a lane's share of the parts.
__device__ __forceinline__ uint4 vector_word(const VectorParts& from, int m) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return lane < VectorParts::kLanes ? from.of[m][lane] : make_uint4(0U, 0U, 0U, 0U);
}

// Word m of the share that lane 4 g + t has of row g of the first eight or the last eight of a product; of the row at
// `from`, as stored, aligned to 16 bytes.
__device__ __forceinline__ uint4 row_word(const void* from, int m) {
  return reinterpret_cast<const uint4*>(from)[4 * m + static_cast<int>(threadIdx.x) % 4];
}
// Of a row of float32 that holds what bfloat16 does.
__device__ __forceinline__ uint4 row_word(const float* from, int m) {
  const float4* eight = reinterpret_cast<const float4*>(from) + 2 * (4 * m + static_cast<int>(threadIdx.x) % 4);
  const float4 a = eight[0];
  const float4 b = eight[1];
  return make_uint4(upper_halves(a.x, a.y), upper_halves(a.z, a.w), upper_halves(b.x, b.y), upper_halves(b.z, b.w));
}

// The share of a row.
struct RowShare {
  uint4 words[kRowWords];

  __device__ static __forceinline__ int row() { return static_cast<int>(threadIdx.x) % 32 / 4; }

  __device__ __forceinline__ void fill_zero() {
#pragma unroll
    for (uint4& word : words) word = make_uint4(0U, 0U, 0U, 0U);
  }
  __device__ __forceinline__ void load(const void* from) {
#pragma unroll
    for (int m = 0; m < kRowWords; ++m) words[m] = row_word(from, m);
  }
};

// Rows times the vectors, summed over the words m = 0 … kRowWords - 1 in two halves.
struct RowSums {
  float even[4] = {0.0F, 0.0F, 0.0F, 0.0F};
  float odd[4] = {0.0F, 0.0F, 0.0F, 0.0F};

  // first, last, x: word m of the rows' shares and of the vectors'.
  __device__ __forceinline__ void add(int m, const uint4& first, const uint4& last, const uint4& x) {
    float(&to)[4] = m % 2 == 0 ? even : odd;
    multiply_add(to, make_uint4(first.x, last.x, first.y, last.y), x.x, x.y);
    multiply_add(to, make_uint4(first.z, last.z, first.w, last.w), x.z, x.w);
  }
  // sum[2 h + v]: what lane 4 g + t has of row g of the first (h = 0) or last eight times part t of vector v.
  __device__ __forceinline__ void finish(float* sum) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] = even[i] + odd[i];
  }
};

__device__ __forceinline__ void multiply_rows(const RowShare& first, const RowShare& last, const VectorParts& x,
                                              float* sum) {
  RowSums sums;
#pragma unroll
  for (int m = 0; m < kRowWords; ++m) sums.add(m, first.words[m], last.words[m], vector_word(x, m));
  sums.finish(sum);
}

// A value in parts in four lanes side by side: their sum, in all four.
__device__ __forceinline__ float add_parts(float part) {
  part = part + __shfl_xor_sync(0xFFFFFFFFU, part, 2);
  return part + __shfl_xor_sync(0xFFFFFFFFU, part, 1);
}

// Of 4 kEach values so, lane t of the four gets kEach: the sums of kEach t and those after it.
template <int kEach>
__device__ __forceinline__ void deal_parts(const float (&part)[4 * kEach], float (&sum)[kEach]) {
  const bool far = (threadIdx.x & 2) != 0;
  float half[2 * kEach];
#pragma unroll
  for (int i = 0; i < 2 * kEach; ++i) {
    const float given = __shfl_xor_sync(0xFFFFFFFFU, far ? part[i] : part[i + 2 * kEach], 2);
    half[i] = (far ? part[i + 2 * kEach] : part[i]) + given;
  }
  const bool near = (threadIdx.x & 1) != 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float given = __shfl_xor_sync(0xFFFFFFFFU, near ? half[i] : half[i + kEach], 1);
    sum[i] = (near ? half[i + kEach] : half[i]) + given;
  }
}

// Calls put(8 h + g, v, product) with what the rows' sums come to, for row g of the first (h = 0) or last eight.
template <class Put>
__device__ __forceinline__ void put_products(const RowSums& sums, const Put& put) {
  float part[4];
  sums.finish(part);
  float sum[1];
  deal_parts<1>(part, sum);
  const auto t = static_cast<int>(threadIdx.x) % 4;
  put(t / 2 * 8 + RowShare::row(), t % 2, sum[0]);
}

// by_first[j], by_second[j] = row j times the vectors, of the rows `begin` up to min(begin + 16, count), by one warp.
// row(j): where a row is, as row_word() wants it.
template <class Row>
__device__ __forceinline__ void multiply_entries(int begin, int count, const VectorParts& x, float* by_first,
                                                 float* by_second, const Row& row) {
  const auto first = row(min(begin + RowShare::row(), count - 1));  // rows past the end are not used
  const auto last = row(min(begin + RowShare::row() + 8, count - 1));
  RowSums sums;
#pragma unroll 1  // to hold few words at a time: this may be done beside loads that are on their way
  for (int m = 0; m < kRowWords; m += 2) {
#pragma unroll
    for (int i = 0; i < 2; ++i) sums.add(i, row_word(first, m + i), row_word(last, m + i), vector_word(x, m + i));
  }
  put_products(sums, [&](int j, int v, float product) {
    if (begin + j < count) (v == 0 ? by_first : by_second)[begin + j] = product;
  });
}

}  // namespace replayeval::cuda
