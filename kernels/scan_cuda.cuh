// What the kernels for blocks of tokens share: which rows of the states a block has, and its tokens' operands on their
// way to it, a chunk of tokens at a time.
//
// A warp has sixteen rows of a head (scan_tile_cuda.cuh) for all tokens, so that only the operands, which all warps
// read, need the block's threads to wait for one another.
#pragma once

#include "kernels/launch_cuda.cuh"
#include "kernels/raw_operands_cuda.cuh"
#include "kernels/scan_tile_cuda.cuh"

#include <cuda_pipeline.h>

namespace replayeval::cuda {

inline constexpr int kMostRows = kMaxWarps * ScanTile::kWarpRows;  // of a block
inline constexpr int kScanBlocks = 2;                              // at once, with 128 registers a thread

// Whether y can be written four elements at a time.
inline bool writes_fours(const Output& out) { return lies_in_fours(out.y, out.y_stride, out.dtype); }

// Blocks of rows of a group's heads; false where the shape or the block is for other kernels. As many warps a block as
// still give every multiprocessor its blocks.
inline bool scan_grid(const HeadShape& shape, const DecodeBlock& block, HeadGrid& grid) {
  constexpr std::int64_t kEnoughBlocks = 264;  // two for every multiprocessor of an H200
  const int heads_per_group = shape.heads / shape.groups;
  const std::int64_t group_rows = static_cast<std::int64_t>(heads_per_group) * shape.rows;
  if (block.tokens == 1 || shape.columns != kScanColumns || shape.rows % ScanTile::kWarpRows != 0 ||
      shape.groups > kMaxGridYZ) {
    return false;
  }
  int warps = kMaxWarps;
  const auto blocks = [&] { return group_rows / (warps * ScanTile::kWarpRows); };
  if (group_rows % (warps * ScanTile::kWarpRows) != 0 || block.batch * shape.groups * blocks() < kEnoughBlocks) {
    warps = kMinWarps;
  }
  if (group_rows % (warps * ScanTile::kWarpRows) != 0) return false;
  grid.cut.heads_per_group = heads_per_group;
  grid.cut.rows_per_block = warps * ScanTile::kWarpRows;
  grid.threads = static_cast<unsigned>(32 * warps);
  grid.blocks = dim3(static_cast<unsigned>(blocks()), static_cast<unsigned>(shape.groups), 1);
  return true;
}

// How many heads, whole or in part, a block's rows belong to at most.
inline int most_heads(int rows, int head_rows) {
  return head_rows % rows == 0 || rows % head_rows == 0 ? (rows + head_rows - 1) / head_rows : rows / head_rows + 2;
}

// Which rows a block and its warps have; rows are those of all heads of a sequence, one after another.
struct ScanRows {
  int row, slot, group;
  int first_row, rows;    // the block's
  int first_head, heads;  // the block's, whole or in part: no more than it has warps
  int warp_row;           // of the warp's first row, within the block
  int warp_head;          // of the warp's rows, within the block

  __device__ __forceinline__ ScanRows(const HeadShape& shape, const DecodeBlock& block, const HeadCut& cut) {
    row = static_cast<int>(blockIdx.z) + cut.first_batch_row;
    slot = block.slots == nullptr ? row : block.slots[row];
    group = static_cast<int>(blockIdx.y);
    rows = cut.rows_per_block;
    first_row = group * cut.heads_per_group * shape.rows + static_cast<int>(blockIdx.x) * rows;
    first_head = first_row / shape.rows;
    heads = (first_row + rows - 1) / shape.rows - first_head + 1;
    warp_row = static_cast<int>(threadIdx.x) / 32 * ScanTile::kWarpRows;
    warp_head = (first_row + warp_row) / shape.rows - first_head;
  }

  __device__ __forceinline__ std::int64_t first_token(const DecodeBlock& block) const {
    return static_cast<std::int64_t>(row) * block.tokens;
  }
  // Of the warp's first row in a state.
  __device__ __forceinline__ std::int64_t state_row(const HeadShape& shape) const {
    return static_cast<std::int64_t>(slot) * shape.heads * shape.rows + first_row + warp_row;
  }
  __device__ __forceinline__ bool has_slot(const State& state) const { return slot >= 0 && slot < state.slots; }
};

// What a chunk of tokens has once in each of the block's heads: a thread has one of them.
class ScanPlace {
 public:
  // A thread's head and place among `capacity` tokens.
  __device__ __forceinline__ explicit ScanPlace(int capacity)
      : head_(static_cast<int>(threadIdx.x) / capacity), place_(static_cast<int>(threadIdx.x) % capacity) {}

  __device__ __forceinline__ int head() const { return head_; }
  __device__ __forceinline__ int place() const { return place_; }
  __device__ __forceinline__ bool has_one(const ScanRows& r, int count) const {
    return head_ < r.heads && place_ < count;
  }

 private:
  int head_, place_;
};

// y of all tokens of a block that has nothing else to do: zero where the row is padded, NaN where its slot or cursor is
// out of range.
__device__ inline void fill_rows(const DecodeBlock& block, const Output& out, const ScanRows& r) {
  const float value = r.slot < 0 ? 0.0F : nanf("");
  for (std::int64_t t = 0; t < block.tokens; ++t) {
    const std::int64_t start = (r.first_token(block) + t) * out.y_stride + r.first_row;
    for (int i = static_cast<int>(threadIdx.x); i < r.rows; i += static_cast<int>(blockDim.x)) {
      store_element(out.y, start + i, value, out.dtype);
    }
  }
}

// y of the warp's rows and `count` tokens from `token` on. sums: [count, 16], on which finish(t, row, y) has the last
// word for four rows. fours: writes_fours().
template <class Finish>
__device__ __forceinline__ void write_rows(const Output& out, bool fours, const ScanRows& r, const float* sums,
                                           std::int64_t token, int count, const Finish& finish) {
  const int row = static_cast<int>(threadIdx.x) % 4 * 4;
  const int first = static_cast<int>(threadIdx.x) % 32 / 4;
  std::int64_t to = (token + first) * out.y_stride + r.first_row + r.warp_row + row;
  for (int t = first; t < count; t += 8, to += 8 * out.y_stride) {
    float y[4];
    load4<Dtype::float32>(sums, t * ScanTile::kWarpRows + row, y);
    finish(t, row, y);
    if (!fours) {
#pragma unroll
      for (int i = 0; i < 4; ++i) store_element(out.y, to + i, y[i], out.dtype);
    } else if (out.dtype == Dtype::float32) {
      store4<Dtype::float32>(out.y, to, y);
    } else if (out.dtype == Dtype::bfloat16) {
      store4<Dtype::bfloat16>(out.y, to, y);
    } else {
      store4<Dtype::float16>(out.y, to, y);
    }
  }
}

// A block's part of an operand: `width` elements of each token, no more than 128.
struct ScanTensor {
  const void* data;
  std::int64_t stride;  // from token to token
  int start, width;
};

// A chunk of tokens' operands, as they lie in the caller's tensors, on their way to shared memory. A warp has whole
// tokens, a lane four elements of each operand, and takes what it has copied itself: nobody waits for another's copies.
template <int kTensors>
class ScanStage {
 public:
  // memory: bytes(), aligned to 16. fours: whether all operands lie_in_fours().
  __device__ __forceinline__ ScanStage(char* memory, const ScanTensor (&tensors)[kTensors], Dtype dtype, bool fours)
      : raw_(memory), dtype_(dtype), fours_(fours) {
#pragma unroll
    for (int i = 0; i < kTensors; ++i) tensors_[i] = tensors[i];
  }
  // width: of all operands together.
  __host__ __device__ static std::size_t bytes(int capacity, int width, Dtype dtype) {
    return static_cast<std::size_t>(capacity) * static_cast<std::size_t>(width) * (dtype == Dtype::float32 ? 4 : 2);
  }

  // Has `count` tokens from `token` on copied.
  __device__ __forceinline__ void fetch(std::int64_t token, int count) const {
    if (fours_) {
      for_tokens(token, count, [&](int /*t*/, const char* const(&from)[kTensors], char* const(&raw)[kTensors]) {
#pragma unroll
        for (int i = 0; i < kTensors; ++i) {
          if (element() >= tensors_[i].width) continue;
          if (dtype_ == Dtype::float32) {
            __pipeline_memcpy_async(raw[i], from[i], 16);
          } else {
            __pipeline_memcpy_async(raw[i], from[i], 8);
          }
        }
      });
    }
    __pipeline_commit();
  }

  // Calls use(t, values) with this lane's four elements of each operand for those of the `count` tokens that the warp
  // has; fetch() was called for them before. All lanes of the warp take part.
  template <class Use>
  __device__ __forceinline__ void take(std::int64_t token, int count, const Use& use) const {
    __pipeline_wait_prior(0);
    if (!fours_) return take_any(token, count, use);
    if (dtype_ == Dtype::float32) return take_copied<Dtype::float32>(count, use);
    if (dtype_ == Dtype::bfloat16) return take_copied<Dtype::bfloat16>(count, use);
    take_copied<Dtype::float16>(count, use);
  }

  __device__ static __forceinline__ int element() { return static_cast<int>(threadIdx.x) % 32 * 4; }

 private:
  template <Dtype kDtype, class Use>
  __device__ __forceinline__ void take_copied(int count, const Use& use) const {
    constexpr int kSize = kDtype == Dtype::float32 ? 4 : 2;
    const int first = static_cast<int>(threadIdx.x) / 32;
    const auto warps = static_cast<int>(blockDim.x) / 32;
    int before[kTensors];  // elements of a token's other operands
    int width = 0;
#pragma unroll
    for (int i = 0; i < kTensors; ++i) {
      before[i] = width;
      width += tensors_[i].width;
    }
    const char* raw = raw_ + (first * width + element()) * kSize;
#pragma unroll 1
    for (int t = first; t < count; t += warps) {
      float values[kTensors][4];
#pragma unroll
      for (int i = 0; i < kTensors; ++i) {
        values[i][0] = values[i][1] = values[i][2] = values[i][3] = 0.0F;
        if (element() < tensors_[i].width) load4<kDtype>(raw + before[i] * kSize, 0, values[i]);
      }
      use(t, values);
      raw += warps * width * kSize;
    }
  }

  template <class Use>
  __device__ __forceinline__ void take_any(std::int64_t token, int count, const Use& use) const {
    for_tokens(token, count, [&](int t, const char* const(&from)[kTensors], char* const(&)[kTensors]) {
      float values[kTensors][4];
#pragma unroll
      for (int i = 0; i < kTensors; ++i) {
        values[i][0] = values[i][1] = values[i][2] = values[i][3] = 0.0F;
        if (element() < tensors_[i].width) load4_any(from[i], 0, dtype_, values[i]);
      }
      use(t, values);
    });
  }

  template <class Use>
  __device__ __forceinline__ void for_tokens(std::int64_t token, int count, const Use& use) const {
    const int first = static_cast<int>(threadIdx.x) / 32;
    const auto warps = static_cast<int>(blockDim.x) / 32;
    const int size = dtype_ == Dtype::float32 ? 4 : 2;
    const char* from[kTensors];
    char* raw[kTensors];
    int width = 0;
#pragma unroll
    for (int i = 0; i < kTensors; ++i) width += tensors_[i].width;
    int before = first * width + element();
#pragma unroll
    for (int i = 0; i < kTensors; ++i) {
      const ScanTensor& tensor = tensors_[i];
      from[i] =
          static_cast<const char*>(tensor.data) + ((token + first) * tensor.stride + tensor.start + element()) * size;
      raw[i] = raw_ + before * size;
      before += tensor.width;
    }
#pragma unroll 1
    for (int t = first; t < count; t += warps) {
      use(t, from, raw);
#pragma unroll
      for (int i = 0; i < kTensors; ++i) {
        from[i] += warps * tensors_[i].stride * size;
        raw[i] += warps * width * size;
      }
    }
  }

  ScanTensor tensors_[kTensors];
  char* raw_;
  Dtype dtype_;
  bool fours_;
};

}  // namespace replayeval::cuda
