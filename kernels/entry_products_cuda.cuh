// What a ring's entries add to a state, sum_j f_j c_j^T, on tensor cores, where c_j is bfloat16 as the ring stores it
// and f_j any float32. f_j is cut into three bfloat16 parts that add up to it exactly, so every product is exact, and
// the sums are kept in float32 (which tensor cores do not round to nearest), the smallest parts first. Used where the
// state is stored in 16 bits: whole rows of Tile128.
//
// One product has 16 of the tile's columns (M), this warp's eight rows (N) and 16 entries, a chunk (K). Product i
// covers two columns of every quad 4 g + i / 2, g = 0 … 7: so a row's quads lie in four lanes side by side, and the
// way back to the Tile's layout, where each lane has all rows of one quad, stays among these four.
#pragma once

#include "kernels/decode.h"
#include "kernels/tile_cuda.cuh"

#include <type_traits>

namespace replayeval::cuda {

using ProductTile = Tile128<true>;
inline constexpr int kChunkEntries = 16;
inline constexpr int kChunkProducts = 8;
inline constexpr int kChunkBytes = kChunkProducts * 32 * 16;  // a chunk's columns, in shared memory
static_assert(kChunkBytes == kChunkEntries * ProductTile::kMaxStateSize * 2);

// Whether entries are added so: where step and block kernels both ask this, their bits agree.
template <class T, Dtype kState>
inline constexpr bool kTakesProducts = std::is_same_v<T, ProductTile>&& kState != Dtype::float32;
inline bool takes_products(int columns, Dtype state, Dtype ring, Flush flush) {
  return columns == ProductTile::kMaxStateSize && state != Dtype::float32 && ring == Dtype::bfloat16 &&
         flush == Flush::summed;
}

// What lane `lane` holds of product i's columns; swizzled against bank conflicts.
__device__ __forceinline__ uint4* columns_at(char* chunk, int i, int lane) {
  return reinterpret_cast<uint4*>(chunk) + i * 32 + (lane ^ (i >> 1));
}

// From columns c and c + 1 of a quad in the low and high halves: what the lane 4 g + t of the products over these two
// columns holds; `of` are those of the entries 2 t, 2 t + 1, 2 t + 8 and 2 t + 9.
__device__ __forceinline__ uint4 lane_columns(const std::uint32_t (&of)[4]) {
  return make_uint4(__byte_perm(of[0], of[1], 0x5410), __byte_perm(of[0], of[1], 0x7632),
                    __byte_perm(of[2], of[3], 0x5410), __byte_perm(of[2], of[3], 0x7632));
}
__device__ __forceinline__ int entry_of(int t, int k) { return 2 * t + k % 2 + k / 2 * 8; }

// What bfloat16 keeps of two values that are cut off there, the first in the low half.
__device__ __forceinline__ std::uint32_t upper_halves(float low, float high) {
  return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
}

// Lays a chunk's columns out for the products, in place, by one warp: [kChunkEntries, columns] of bfloat16, of which
// entries from `count` on become zero.
__device__ __forceinline__ void lay_out_columns(char* chunk, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t quad[kChunkEntries][2];
#pragma unroll
  for (int j = 0; j < kChunkEntries; ++j) {
    const uint2 bits = reinterpret_cast<const uint2*>(chunk)[j * 32 + lane];
    quad[j][0] = j < count ? bits.x : 0U;
    quad[j][1] = j < count ? bits.y : 0U;
  }
  __syncwarp();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      std::uint32_t of[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) of[k] = quad[entry_of(t, k)][half];
      *columns_at(chunk, 2 * (lane % 4) + half, lane / 4 * 4 + t) = lane_columns(of);
    }
  }
}

// The same by a block to another place; pair(j, half) is the lane's quad's first or second half of entry j < count.
template <class Pair>
__device__ __forceinline__ void lay_out_pairs(int count, char* chunk, const Pair& pair) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int part = static_cast<int>(threadIdx.x) / 32; part < 8; part += static_cast<int>(blockDim.x) / 32) {
    const int half = part / 4;
    const int t = part % 4;
    std::uint32_t of[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int j = entry_of(t, k);
      of[k] = j < count ? pair(j, half) : 0U;
    }
    *columns_at(chunk, 2 * (lane % 4) + half, lane / 4 * 4 + t) = lane_columns(of);
  }
}

// From columns in float32 that hold what bfloat16 does; `count` entries of them are left.
__device__ __forceinline__ void lay_out_columns(const float* columns, int count, char* chunk) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  lay_out_pairs(count, chunk, [&](int j, int half) {
    const float* at = columns + j * ProductTile::kMaxStateSize + 4 * lane + 2 * half;
    const float2 two = *reinterpret_cast<const float2*>(at);
    return upper_halves(two.x, two.y);
  });
}

__device__ __forceinline__ void multiply_add(float (&sum)[4], const uint4& a, std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// What a lane has of a chunk's factors for eight rows, each cut into three parts.
struct FactorParts {
  std::uint32_t part[3][2];

  // factor(j, row): f of the chunk's entry j for the row; zero where there is no entry.
  template <class Factor>
  __device__ __forceinline__ void take(const Factor& factor) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float factors[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) factors[k] = factor(entry_of(lane % 4, k), lane / 4);
    take(factors);
  }
  // The same of what the lane 4 row + t has: f of the entries entry_of(t, k).
  __device__ __forceinline__ void take(const float (&factors)[4]) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      float rest[2] = {factors[2 * pair], factors[2 * pair + 1]};
#pragma unroll
      for (int p = 0; p < 3; ++p) {
        part[p][pair] = upper_halves(rest[0], rest[1]);  // cut off, not rounded: nothing overflows
        rest[0] = without(rest[0]);
        rest[1] = without(rest[1]);
      }
    }
  }

 private:
  // What bfloat16 leaves of a value when it is cut off there; of infinity and NaN nothing.
  __device__ static __forceinline__ float without(float value) {
    const float kept = __uint_as_float(__float_as_uint(value) & 0xFFFF0000U);
    return fabsf(value) <= max_finite<Dtype::float32>() ? value - kept : 0.0F;
  }
};

// Sums over chunks, as the products leave them.
struct EntrySums {
  float of[kChunkProducts][4];

  __device__ __forceinline__ EntrySums() {
#pragma unroll
    for (int i = 0; i < kChunkProducts; ++i) of[i][0] = of[i][1] = of[i][2] = of[i][3] = 0.0F;
  }

  // factor: as FactorParts::take() has it.
  template <class Factor>
  __device__ __forceinline__ void add_chunk(const char* chunk, const Factor& factor) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    FactorParts factors;
    factors.take(factor);
#pragma unroll
    for (int i = 0; i < kChunkProducts; ++i) {
      const uint4 columns = *columns_at(const_cast<char*>(chunk), i, lane);
#pragma unroll
      for (int p = 2; p >= 0; --p) multiply_add(of[i], columns, factors.part[p][0], factors.part[p][1]);
    }
  }

  // Calls use(r, c, sum) for this lane's rows and columns of the Tile.
  template <class Use>
  __device__ __forceinline__ void for_tile(const Use& use) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float quads[4] = {of[half][i], of[2 + half][i], of[4 + half][i], of[6 + half][i]};
        exchange(quads);
#pragma unroll
        for (int t = 0; t < 4; ++t) use(2 * t + i % 2, 2 * half + i / 2, quads[t]);
      }
    }
  }

 private:
  // Among four lanes side by side: lane t's value i becomes lane i's value t.
  __device__ static __forceinline__ void exchange(float (&value)[4]) {
    const bool far = (threadIdx.x & 2) != 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float got = __shfl_xor_sync(0xFFFFFFFFU, far ? value[i] : value[i + 2], 2);
      const float first = far ? got : value[i];
      value[i + 2] = far ? value[i + 2] : got;
      value[i] = first;
    }
    const bool near = (threadIdx.x & 1) != 0;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const float got = __shfl_xor_sync(0xFFFFFFFFU, near ? value[i] : value[i + 1], 1);
      const float first = near ? got : value[i];
      value[i + 1] = near ? value[i + 1] : got;
      value[i] = first;
    }
  }
};

// S <- scale S + sum_{j < count} f_j columns_j^T by all threads of a block; columns [count, columns] as in
// lay_out_columns(), factor(j, row) as in add_chunk(), count > 0. memory: kChunkBytes, aligned to 16.
template <class Factor>
__device__ __forceinline__ void add_entries_together(ProductTile& tile, float scale, const float* columns, int count,
                                                     char* memory, const Factor& factor) {
  EntrySums sums;
  for (int first = 0; first < count; first += kChunkEntries) {
    __syncthreads();
    lay_out_columns(columns + first * ProductTile::kMaxStateSize, count - first, memory);
    __syncthreads();
    sums.add_chunk(memory, [&](int j, int row) { return first + j < count ? factor(first + j, row) : 0.0F; });
  }
  sums.for_tile([&](int r, int c, float sum) { tile.s[r][0][c] = fmaf(scale, tile.s[r][0][c], sum); });
}

}  // namespace replayeval::cuda
