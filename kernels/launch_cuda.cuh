// What the CUDA kernels' launches share: which (row, head, rows of the state) a block has, grid sizes, errors.
//
// A family says how its Shape reads as heads that share operands in groups, by a function beside its Shape:
//   __host__ __device__ HeadShape head_shape(const Shape&)
#pragma once

#include "kernels/bulk_cuda.cuh"
#include "kernels/decode.h"
#include "kernels/storage_cuda.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace replayeval::cuda {

inline constexpr int kMaxWarps = 8;  // of a block
inline constexpr int kMinWarps = 4;  // the four parts of a token's operands have a warp each
inline constexpr std::int64_t kMaxGridYZ = 65535;

struct HeadShape {
  int heads, groups;  // of them; heads of a group share the operands along the columns
  int rows, columns;  // of a head's state
};

inline void expect_success(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error("kernels: " + std::string(what) + ": " + cudaGetErrorString(status));
  }
}

inline void expect_launched(const char* kernel) { expect_success(cudaGetLastError(), kernel); }

// Of the kernel's code as loaded, not of what the GPU could run.
template <class Kernel>
cudaFuncAttributes attributes_of(Kernel kernel) {
  cudaFuncAttributes attributes{};
  expect_success(cudaFuncGetAttributes(&attributes, kernel), "reading a kernel's attributes");
  return attributes;
}
inline bool is_for_hopper(const cudaFuncAttributes& attributes) { return attributes.ptxVersion >= 90; }

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  expect_success(cudaGetDevice(&device), "cudaGetDevice");
  expect_success(cudaDeviceGetAttribute(&value, attribute, device), "reading the GPU's attributes");
  return value;
}

// Launches `kernel`, on a Hopper GPU so that it may overlap with the launch before it: it must call
// wait_for_earlier_launches().
template <class Arguments>
void launch(void (*kernel)(Arguments), dim3 blocks, dim3 threads, std::size_t shared, cudaStream_t stream,
            const Arguments& arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = is_for_hopper(attributes_of(kernel)) ? 1 : 0;
  expect_success(cudaLaunchKernelEx(&config, kernel, arguments), "launching a kernel");
}

// Lets a kernel use more than the 48 KiB of shared memory that it may without asking.
template <class Kernel>
void allow_shared(Kernel kernel, std::size_t bytes) {
  constexpr std::size_t kWithoutAsking = std::size_t{48} * 1024;
  if (bytes <= kWithoutAsking) return;
  expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
                 "asking for shared memory");
}

// How a head's rows are cut into blocks; goes to the kernel too.
struct HeadCut {
  int tiles = 1;            // blocks a head
  int heads_per_block = 1;  // more than one only where tiles is 1
  int heads_per_group = 0;
  int rows_per_block = 0;
  int first_batch_row = 0;
};

// x: the tiles and heads of a group, so that blocks that share operands run side by side; y: groups; z: rows of the
// batch.
struct HeadGrid {
  HeadCut cut;
  dim3 blocks;
  unsigned threads = 0;
};

// Few (row, head) pairs are cut into more, smaller blocks, so that every multiprocessor has some.
inline HeadGrid head_grid(const HeadShape& shape, std::int64_t batch, int warp_rows) {
  constexpr std::int64_t kEnoughBlocks = 512;
  if (shape.groups > kMaxGridYZ) {
    throw std::invalid_argument("kernels: " + std::to_string(shape.groups) + " groups of heads; a GPU allows up to " +
                                std::to_string(kMaxGridYZ));
  }
  const int head_warps = (shape.rows + warp_rows - 1) / warp_rows;
  int warps = std::clamp(head_warps, kMinWarps, kMaxWarps);
  while (warps > kMinWarps && batch * shape.heads * ((head_warps + warps - 1) / warps) < kEnoughBlocks) --warps;
  HeadGrid grid;
  grid.cut.tiles = (head_warps + warps - 1) / warps;
  grid.cut.heads_per_group = shape.heads / shape.groups;
  grid.cut.rows_per_block = warps * warp_rows;
  grid.threads = static_cast<unsigned>(32 * warps);
  grid.blocks =
      dim3(static_cast<unsigned>(grid.cut.heads_per_group * grid.cut.tiles), static_cast<unsigned>(shape.groups), 1);
  return grid;
}

// Calls launch(grid) for as many rows of the batch at a time as a grid can have.
template <class Launch>
void for_batch(HeadGrid grid, std::int64_t batch, const Launch& launch) {
  for (std::int64_t first = 0; first < batch; first += kMaxGridYZ) {
    grid.cut.first_batch_row = static_cast<int>(first);
    grid.blocks.z = static_cast<unsigned>(std::min(kMaxGridYZ, batch - first));
    launch(grid);
  }
}

// What a block has: some rows of one head of one row of the batch, or all rows of several heads by turns.
struct BlockHead {
  int row, head, group, slot;
  int tile, first_row, rows;  // of the head's state
  bool leads_group;           // the group's first head
  std::int64_t state_offset;  // of the block's first row of the slot's state, in elements

  template <class Shape>
  __device__ __forceinline__ BlockHead(const Shape& given_shape, const DecodeBlock& block, const HeadCut& cut) {
    const HeadShape shape = head_shape(given_shape);
    row = static_cast<int>(blockIdx.z) + cut.first_batch_row;
    slot = block.slots == nullptr ? row : block.slots[row];
    group = static_cast<int>(blockIdx.y);
    int head_in_group = static_cast<int>(blockIdx.x) * cut.heads_per_block;
    tile = 0;
    if (cut.tiles > 1) {
      head_in_group = static_cast<int>(blockIdx.x / static_cast<unsigned>(cut.tiles));
      tile = static_cast<int>(blockIdx.x % static_cast<unsigned>(cut.tiles));
    }
    leads_group = head_in_group == 0;
    head = group * cut.heads_per_group + head_in_group;
    first_row = tile * cut.rows_per_block;
    rows = min(cut.rows_per_block, shape.rows - first_row);
    const std::int64_t first_of_all = static_cast<std::int64_t>(slot) * shape.heads + head;
    state_offset = (first_of_all * shape.rows + first_row) * shape.columns;
  }

  // The row's slot as it is now: after wait_for_earlier_launches(), where this was made before it.
  template <class Shape>
  __device__ __forceinline__ void read_slot(const Shape& given_shape, const DecodeBlock& block) {
    if (block.slots == nullptr) return;
    const HeadShape shape = head_shape(given_shape);
    slot = block.slots[row];
    state_offset = ((static_cast<std::int64_t>(slot) * shape.heads + head) * shape.rows + first_row) * shape.columns;
  }

  // The k-th of the block's heads.
  template <class Shape>
  __device__ __forceinline__ BlockHead at(const Shape& given_shape, int k) const {
    const HeadShape shape = head_shape(given_shape);
    BlockHead other = *this;
    other.head += k;
    other.leads_group = leads_group && k == 0;
    other.state_offset += static_cast<std::int64_t>(k) * shape.rows * shape.columns;
    return other;
  }

  // The block's first element of a [tokens, heads, rows] tensor's row.
  template <class Shape>
  __device__ __forceinline__ std::int64_t x_offset(const Shape& shape, std::int64_t token, std::int64_t stride) const {
    return token * stride + head * head_shape(shape).rows + first_row;
  }
};

// Has a block's rows of the state on their way to the cache while the launch before this one ends. The slot may change
// until then: so this is no more than a guess.
template <Dtype kState>
__device__ __forceinline__ void prefetch_state(const State& state, const BlockHead& h, int columns) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr int kSize = kState == Dtype::float32 ? 4 : 2;
  if (threadIdx.x != 0 || h.slot < 0 || h.slot >= state.slots) return;
  prefetch_bulk(static_cast<const char*>(state.data) + h.state_offset * kSize,
                static_cast<unsigned>(h.rows * columns * kSize));
#endif
}

// Sets y of all tokens of a block's rows: zero where the row is padded, NaN where its slot or cursor is out of range.
template <class Shape>
__device__ inline void fill_y(const Shape& shape, const DecodeBlock& block, const Output& out, const BlockHead& h,
                              float value) {
  for (std::int64_t t = 0; t < block.tokens; ++t) {
    const std::int64_t start = h.x_offset(shape, h.row * block.tokens + t, out.y_stride);
    for (int p = static_cast<int>(threadIdx.x); p < h.rows; p += static_cast<int>(blockDim.x)) {
      store_element(out.y, start + p, value, out.dtype);
    }
  }
}

}  // namespace replayeval::cuda
