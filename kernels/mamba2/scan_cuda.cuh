// What the kernels for blocks of tokens share, exact and replay: which rows a block has, and its tokens' operands on
// their way through shared memory, a chunk of tokens at a time.
//
// A warp has sixteen rows of a head (scan_tile_cuda.cuh) for all tokens, so that only the operands, which all warps
// read, need the block's threads to wait for one another.
#pragma once

#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/scan_tile_cuda.cuh"

#include <cuda_pipeline.h>

namespace replayeval::mamba2::cuda {

inline constexpr int kMostRows = kMaxWarps * ScanTile::kWarpRows;  // of a block
inline constexpr int kScanBlocks = 2;                              // at once, with 128 registers a thread

// Whether y can be written four elements at a time.
inline bool writes_fours(const Output& out) { return lies_in_fours(out.y, out.y_stride, out.dtype); }

// Blocks of rows of a group's heads; false where the shape or the block is for other kernels. As many warps a block as
// still give every multiprocessor its blocks.
inline bool scan_grid(const Shape& shape, const Block& block, HeadGrid& grid) {
  constexpr std::int64_t kEnoughBlocks = 264;  // two for every multiprocessor of an H200
  const std::int64_t heads_per_group = shape.num_heads / shape.num_groups;
  const std::int64_t group_rows = heads_per_group * shape.head_dim;
  if (block.tokens == 1 || shape.state_size != kScanColumns || shape.head_dim % ScanTile::kWarpRows != 0 ||
      shape.num_groups > kMaxGridYZ) {
    return false;
  }
  int warps = kMaxWarps;
  const auto blocks = [&] { return group_rows / (warps * ScanTile::kWarpRows); };
  if (group_rows % (warps * ScanTile::kWarpRows) != 0 || block.batch * shape.num_groups * blocks() < kEnoughBlocks) {
    warps = kMinWarps;
  }
  if (group_rows % (warps * ScanTile::kWarpRows) != 0) return false;
  grid.cut.heads_per_group = static_cast<int>(heads_per_group);
  grid.cut.rows_per_block = warps * ScanTile::kWarpRows;
  grid.threads = static_cast<unsigned>(32 * warps);
  grid.blocks = dim3(static_cast<unsigned>(blocks()), static_cast<unsigned>(shape.num_groups), 1);
  return true;
}

// How many heads, whole or in part, a block's rows belong to at most.
inline int most_heads(int rows, int head_dim) {
  return head_dim % rows == 0 || rows % head_dim == 0 ? (rows + head_dim - 1) / head_dim : rows / head_dim + 2;
}

// Which rows a block and its warps have; rows are those of all heads of a sequence, one after another.
struct ScanRows {
  int row, slot, group;
  int first_row, rows;    // the block's
  int first_head, heads;  // the block's, whole or in part: no more than it has warps
  int warp_row;           // of the warp's first row, within the block
  int warp_head;          // of the warp's rows, within the block

  __device__ __forceinline__ ScanRows(const Shape& shape, const Block& block, const HeadCut& cut) {
    const auto P = static_cast<int>(shape.head_dim);
    row = static_cast<int>(blockIdx.z) + cut.first_batch_row;
    slot = block.slots == nullptr ? row : block.slots[row];
    group = static_cast<int>(blockIdx.y);
    rows = cut.rows_per_block;
    first_row = group * cut.heads_per_group * P + static_cast<int>(blockIdx.x) * rows;
    first_head = first_row / P;
    heads = (first_row + rows - 1) / P - first_head + 1;
    warp_row = static_cast<int>(threadIdx.x) / 32 * ScanTile::kWarpRows;
    warp_head = (first_row + warp_row) / P - first_head;
  }

  __device__ __forceinline__ std::int64_t first_token(const Block& block) const {
    return static_cast<std::int64_t>(row) * block.tokens;
  }
  // Of the warp's first row in a state.
  __device__ __forceinline__ std::int64_t state_row(const Shape& shape) const {
    return slot * shape.num_heads * shape.head_dim + first_row + warp_row;
  }
  __device__ __forceinline__ bool has_slot(const State& state) const { return slot >= 0 && slot < state.slots; }
};

// y of all tokens of a block that has nothing else to do: zero where the row is padded, NaN where its slot or cursor is
// out of range.
__device__ inline void fill_rows(const Block& block, const Output& out, const ScanRows& r) {
  const float value = r.slot < 0 ? 0.0F : nanf("");
  for (std::int64_t t = 0; t < block.tokens; ++t) {
    const std::int64_t start = (r.first_token(block) + t) * out.y_stride + r.first_row;
    for (int i = static_cast<int>(threadIdx.x); i < r.rows; i += static_cast<int>(blockDim.x)) {
      store_element(out.y, start + i, value, out.dtype);
    }
  }
}

// A chunk of tokens' x, B and C in shared memory as float32, and the next chunk's beside it as they lie in the caller's
// tensors. Each thread copies and converts the same four elements of a token, so nobody waits for another's copies.
class ScanOperands {
 public:
  float* B;  // [capacity, 128]
  float* C;  // [capacity, 128]
  float* x;  // [capacity, kMostRows]

  // memory: bytes(), aligned to 16. fours: reads_fours().
  __device__ __forceinline__ ScanOperands(char* memory, int capacity, int rows, const Inputs& in, bool fours)
      : in_(in), fours_(fours), rows_(rows) {
    B = reinterpret_cast<float*>(memory);
    C = B + capacity * kColumns;
    x = C + capacity * kColumns;
    raw_ = reinterpret_cast<char*>(x + capacity * kMostRows);
  }
  __host__ __device__ static std::size_t bytes(int capacity, int rows, Dtype dtype) {
    const auto tokens = static_cast<std::size_t>(capacity);
    return tokens * ((2 * kColumns + kMostRows) * sizeof(float) +
                     static_cast<std::size_t>(2 * kColumns + rows) * (dtype == Dtype::float32 ? 4 : 2));
  }

  // Has `count` tokens from `token` on copied.
  __device__ __forceinline__ void fetch(const ScanRows& r, std::int64_t token, int count) const {
    if (fours_) {
      for_fours(
          r, token, count, 0,
          [&](const char* from, char* raw, float* /*to*/) {
            if (in_.dtype == Dtype::float32) {
              __pipeline_memcpy_async(raw, from, 16);
            } else {
              __pipeline_memcpy_async(raw, from, 8);
            }
          },
          [](int /*t*/) {});
    }
    __pipeline_commit();
  }

  // The tokens that fetch() was called for become those of the chunk from `position` on; others see them after
  // __syncthreads().
  __device__ __forceinline__ void take(const ScanRows& r, std::int64_t token, int count, int position) const {
    take(
        r, token, count, position, [](const float(&)[4]) {}, [](int) {});
  }
  // Also calls see(values) for each four, and taken(t) after the `count` tokens' t-th, in each lane of the warp that
  // takes it.
  template <class See, class Taken>
  __device__ __forceinline__ void take(const ScanRows& r, std::int64_t token, int count, int position, const See& see,
                                       const Taken& taken) const {
    __pipeline_wait_prior(0);
    const auto use = [&](const char* from, const char* raw, float* to) {
      float values[4];
      if (!fours_) {
        load4_any(from, 0, in_.dtype, values);
      } else if (in_.dtype == Dtype::float32) {
        load4<Dtype::float32>(raw, 0, values);
      } else if (in_.dtype == Dtype::bfloat16) {
        load4<Dtype::bfloat16>(raw, 0, values);
      } else {
        load4<Dtype::float16>(raw, 0, values);
      }
      *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
      see(values);
    };
    for_fours(r, token, count, position, use, taken);
  }

 private:
  static constexpr int kColumns = kScanColumns;

  // Calls use(from, raw, to) for this thread's fours of `count` tokens: where they come from, where they are copied to,
  // and where they go to as float32. Then taken(t) for the t-th of them.
  template <class Use, class Taken>
  __device__ __forceinline__ void for_fours(const ScanRows& r, std::int64_t token, int count, int position,
                                            const Use& use, const Taken& taken) const {
    const int element = static_cast<int>(threadIdx.x) % 32 * 4;
    const int first = static_cast<int>(threadIdx.x) / 32;
    const auto warps = static_cast<int>(blockDim.x) / 32;
    const int size = in_.dtype == Dtype::float32 ? 4 : 2;
    token += first;
    const auto at = [&](const void* data, std::int64_t stride, int start) {
      return static_cast<const char*>(data) + (token * stride + start + element) * size;
    };
    const char* from_B = at(in_.B, in_.B_stride, r.group * kColumns);
    const char* from_C = at(in_.C, in_.C_stride, r.group * kColumns);
    const char* from_x = at(in_.x, in_.x_stride, r.first_row);
    const int columns_to = (position + first) * kColumns + element;
    const int x_to = (position + first) * kMostRows + element;
    const int raw_token = (2 * kColumns + rows_) * size;
    char* raw = raw_ + first * raw_token + element * size;
#pragma unroll 1
    for (int t = 0; t < count - first; t += warps) {
      use(from_B, raw, B + columns_to + t * kColumns);
      use(from_C, raw + kColumns * size, C + columns_to + t * kColumns);
      if (element < rows_) use(from_x, raw + 2 * kColumns * size, x + x_to + t * kMostRows);
      taken(first + t);
      from_B += warps * in_.B_stride * size;
      from_C += warps * in_.C_stride * size;
      from_x += warps * in_.x_stride * size;
      raw += warps * raw_token;
    }
  }

  const Inputs& in_;
  bool fours_;
  int rows_;
  char* raw_;
};

// y of the warp's rows and `count` tokens from `token` on. sums: [count, kWarpRows], all of it but D x; x: of these
// tokens, at the warp's rows. fours: whether y can be written four elements at a time.
__device__ __forceinline__ void write_y(const Output& out, bool fours, const ScanRows& r, float D, const float* sums,
                                        const float* x, std::int64_t token, int count) {
  constexpr int kWarpRows = ScanTile::kWarpRows;
  const int row = static_cast<int>(threadIdx.x) % 4 * 4;
  const int first = static_cast<int>(threadIdx.x) % 32 / 4;
  std::int64_t to = (token + first) * out.y_stride + r.first_row + r.warp_row + row;
  for (int t = first; t < count; t += 8, to += 8 * out.y_stride) {
    float y[4];
    float own_x[4];
    load4<Dtype::float32>(sums, t * kWarpRows + row, y);
    load4<Dtype::float32>(x, t * kMostRows + row, own_x);
#pragma unroll
    for (int i = 0; i < 4; ++i) y[i] = fmaf(D, own_x[i], y[i]);
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

// dt of a chunk of tokens in each of the block's heads: a thread has one of them.
class ScanTimeSteps {
 public:
  // A thread's head and place among `capacity` tokens.
  __device__ __forceinline__ explicit ScanTimeSteps(int capacity)
      : head_(static_cast<int>(threadIdx.x) / capacity), place_(static_cast<int>(threadIdx.x) % capacity) {}

  __device__ __forceinline__ int head() const { return head_; }
  __device__ __forceinline__ int place() const { return place_; }
  __device__ __forceinline__ bool has_one(const ScanRows& r, int count) const {
    return head_ < r.heads && place_ < count;
  }
  __device__ __forceinline__ void fetch(const Inputs& in, const ScanRows& r, std::int64_t token, int count) {
    if (has_one(r, count)) raw_.load(in.dt, (token + place_) * in.dt_stride + r.first_head + head_, in.dtype);
  }
  __device__ __forceinline__ float take(const Inputs& in, const Parameters& parameters, const ScanRows& r) const {
    return time_step(raw_.decode(in.dtype), parameters.dt_bias[r.first_head + head_], parameters.dt_min,
                     parameters.dt_max);
  }

 private:
  int head_, place_;
  RawElement raw_{};
};

}  // namespace replayeval::mamba2::cuda
