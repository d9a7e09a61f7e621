// What the CUDA kernels' launches share: which (row, head, tile) a block is, grid sizes, errors.
#pragma once

#include "kernels/mamba2/mamba2.h"
#include "kernels/mamba2/scalars_cuda.cuh"
#include "kernels/mamba2/tile_cuda.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace replayeval::mamba2::cuda {

inline constexpr int kMaxWarps = 8;

inline void expect_success(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error("mamba2: " + std::string(what) + ": " + cudaGetErrorString(status));
  }
}

inline void expect_launched(const char* kernel) { expect_success(cudaGetLastError(), kernel); }

// Blocks over (row, head) pairs and over tiles of a head's rows.
struct HeadGrid {
  dim3 blocks;
  unsigned threads = 0;
  int rows_per_block = 0;
};

// Few pairs are cut into more, smaller blocks, so that every multiprocessor has some.
inline HeadGrid head_grid(const Shape& shape, std::int64_t batch, int warp_rows) {
  constexpr std::int64_t kEnoughBlocks = 512;
  const std::int64_t pairs = batch * shape.num_heads;
  if (pairs > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("mamba2: batch x num_heads is " + std::to_string(pairs) + "; allowed: up to 2147483647");
  }
  const auto head_warps = static_cast<int>((shape.head_dim + warp_rows - 1) / warp_rows);
  int warps = std::min(head_warps, kMaxWarps);
  while (warps > 2 && pairs * ((head_warps + warps - 1) / warps) < kEnoughBlocks) warps = (warps + 1) / 2;
  const int tiles = (head_warps + warps - 1) / warps;
  return {dim3(static_cast<unsigned>(pairs), static_cast<unsigned>(tiles)), static_cast<unsigned>(32 * warps),
          warps * warp_rows};
}

// Calls `launch` with the tile type for a state size and the state's dtype, as launch.template operator()<Tile, kState>().
template <class Launch>
void with_tile(const Shape& shape, Dtype state, const Launch& launch) {
  const auto with_dtype = [&]<class T>() {
    if (state == Dtype::float32) {
      launch.template operator()<T, Dtype::float32>();
    } else if (state == Dtype::bfloat16) {
      launch.template operator()<T, Dtype::bfloat16>();
    } else {
      launch.template operator()<T, Dtype::float16>();
    }
  };
  if (shape.state_size <= Tile64::kMaxStateSize) {
    with_dtype.template operator()<Tile64>();
  } else if (shape.state_size <= Tile128::kMaxStateSize) {
    with_dtype.template operator()<Tile128>();
  } else {
    with_dtype.template operator()<Tile256>();
  }
}

// One (row, head) pair as a block sees it.
struct BlockHead {
  int row, head, group, slot;
  std::int64_t state_offset;  // of this slot and head, in elements

  __device__ __forceinline__ BlockHead(const Shape& shape, const Block& block) {
    const int heads = static_cast<int>(shape.num_heads);
    row = static_cast<int>(blockIdx.x) / heads;
    head = static_cast<int>(blockIdx.x) % heads;
    group = head / (heads / static_cast<int>(shape.num_groups));
    slot = block.slots == nullptr ? row : block.slots[row];
    state_offset = (static_cast<std::int64_t>(slot) * shape.num_heads + head) * shape.head_dim * shape.state_size;
  }
};

// Sets y of all tokens of a block's rows: zero where the row is padded, NaN where its slot or cursor is out of range.
__device__ inline void fill_y(const Shape& shape, const Block& block, const Output& out, const BlockHead& h,
                              int first_row, int rows, float value) {
  const int end = min(first_row + rows, static_cast<int>(shape.head_dim));
  for (std::int64_t t = 0; t < block.tokens; ++t) {
    const std::int64_t start = (h.row * block.tokens + t) * out.y_stride + h.head * shape.head_dim;
    for (int p = first_row + static_cast<int>(threadIdx.x); p < end; p += static_cast<int>(blockDim.x)) {
      store_element(out.y, start + p, value, out.dtype);
    }
  }
}

}  // namespace replayeval::mamba2::cuda
