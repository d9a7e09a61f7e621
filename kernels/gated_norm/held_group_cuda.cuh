// Groups that threads hold in registers: a row is read once and written once. A thread has vectors of eight elements of
// a group; blocks have several rows of the same groups, so that the weights come from a near cache.
#pragma once

#include "kernels/elements_cuda.cuh"
#include "kernels/gated_norm/arguments_cuda.cuh"

namespace replayeval::cuda {

inline constexpr int kVectorElements = 8;
inline constexpr int kHeldVectors = 2;  // of a thread
inline constexpr int kMostGroupThreads = 512;
inline constexpr std::int64_t kMostHeldGroup = std::int64_t{kMostGroupThreads} * kHeldVectors * kVectorElements;

// Eight elements of one tensor: in vectors, or one by one as far as the group goes; the same values in the same places.
template <Dtype kDtype>
struct AlignedVector {
  Elements<kDtype, kVectorElements> elements;
  __device__ __forceinline__ void load(const void* data, std::int64_t index, Dtype /*dtype*/, int /*count*/) {
    elements.load(data, index);
  }
  __device__ __forceinline__ float value(int i) const { return elements.value(i); }
  __device__ static __forceinline__ void store(const float (&from)[kVectorElements], void* data, std::int64_t index,
                                               Dtype /*dtype*/, int /*count*/) {
    Elements<kDtype, kVectorElements> packed;
    packed.pack(from);
    packed.store(data, index);
  }
};
struct AnyVector {
  float values[kVectorElements];
  __device__ __forceinline__ void load(const void* data, std::int64_t index, Dtype dtype, int count) {
#pragma unroll
    for (int i = 0; i < kVectorElements; ++i) values[i] = i < count ? load_element(data, index + i, dtype) : 0.0F;
  }
  __device__ __forceinline__ float value(int i) const { return values[i]; }
  __device__ static __forceinline__ void store(const float (&from)[kVectorElements], void* data, std::int64_t index,
                                               Dtype dtype, int count) {
#pragma unroll
    for (int i = 0; i < kVectorElements; ++i) {
      if (i < count) store_element(data, index + i, from[i], dtype);
    }
  }
};

// Where a thread's elements lie.
struct HeldPlace {
  std::int64_t row, first;  // first: of the thread's first vector, in the row
  int left;                 // elements of the group from there on; none where the thread has no group
  int step;                 // elements from one of its vectors to the next

  __device__ __forceinline__ explicit HeldPlace(const GatedNormArguments& a) {
    const GatedNorm& n = a.norm;
    const auto thread = static_cast<int>(threadIdx.x);
    const int groups_together = a.unit_threads / a.group_threads;
    const auto groups = static_cast<int>(n.width / n.group_size);
    const int units = (groups + groups_together - 1) / groups_together;  // of a row
    const auto block = static_cast<int>(blockIdx.x);
    const int rows_together = static_cast<int>(blockDim.x) / a.unit_threads;
    row = static_cast<std::int64_t>(block / units) * rows_together + thread / a.unit_threads;
    const int group = block % units * groups_together + thread % a.unit_threads / a.group_threads;
    const int begin = thread % a.group_threads * kVectorElements;
    first = group * n.group_size + begin;
    left = row < n.rows && group < groups ? static_cast<int>(n.group_size) - begin : 0;
    step = a.group_threads * kVectorElements;
  }
  __device__ __forceinline__ int count(int vector) const { return left - vector * step; }
};

template <class Y, class Z, class Weight>
__global__ void __launch_bounds__(kMostGroupThreads) held_group_kernel(const __grid_constant__ GatedNormArguments a) {
  wait_for_earlier_launches();
  let_later_launches_begin();
  const GatedNorm& n = a.norm;
  const HeldPlace place(a);
  const bool norms = n.form != GateForm::gate_only;
  Y y[kHeldVectors];
  Z z[kHeldVectors];
  Weight weight[kHeldVectors];
#pragma unroll
  for (int v = 0; v < kHeldVectors; ++v) {
    const int count = place.count(v);
    if (count <= 0) continue;
    const std::int64_t at = place.first + v * place.step;
    y[v].load(n.y, place.row * n.y_stride + at, n.y_dtype, count);
    z[v].load(n.z, place.row * n.z_stride + at, n.dtype, count);
    if (norms) weight[v].load(n.weight, at, Dtype::float32, count);
  }
  float h[kHeldVectors][kVectorElements], gate[kHeldVectors][kVectorElements];
  float squares = 0.0F;
#pragma unroll
  for (int v = 0; v < kHeldVectors; ++v) {
    if (place.count(v) <= 0) continue;
#pragma unroll
    for (int i = 0; i < kVectorElements; ++i) {
      gate[v][i] = gate_factor(n.activation, z[v].value(i));
      h[v][i] = norm_input(n, y[v].value(i), gate[v][i]);
      if (i < place.count(v)) squares = fmaf(h[v][i], h[v][i], squares);
    }
  }
  const float inverse = norms ? inverse_root(group_sum(squares, a.group_threads), n) : 1.0F;
#pragma unroll
  for (int v = 0; v < kHeldVectors; ++v) {
    const int count = place.count(v);
    if (count <= 0) continue;
    float out[kVectorElements];
#pragma unroll
    for (int i = 0; i < kVectorElements; ++i)
      out[i] = norm_output(n, h[v][i], gate[v][i], inverse, norms ? weight[v].value(i) : 0.0F);
    Z::store(out, n.out, place.row * n.out_stride + place.first + v * place.step, n.dtype, count);
  }
}

// Of a group of `size` elements.
inline int threads_of_group(std::int64_t size) {
  const std::int64_t needed = (size + kVectorElements * kHeldVectors - 1) / (kVectorElements * kHeldVectors);
  if (needed > 32) return static_cast<int>((needed + 31) / 32 * 32);
  int threads = 1;
  while (threads < needed) threads *= 2;
  return threads;
}

template <class Y, class Z, class Weight>
void launch_held_groups(cudaStream_t stream, const GatedNorm& norm) {
  const int group_threads = threads_of_group(norm.group_size);
  const GatedNormArguments arguments{norm, group_threads, std::max(group_threads, 32)};
  const int unit = arguments.unit_threads;
  const std::int64_t groups_together = unit / group_threads;
  const std::int64_t units = (norm.width / norm.group_size + groups_together - 1) / groups_together;
  const int rows_together = std::max(1, kNormThreads / unit);
  const std::int64_t blocks = (norm.rows + rows_together - 1) / rows_together * units;
  launch(held_group_kernel<Y, Z, Weight>, dim3(norm_blocks(blocks)), static_cast<unsigned>(unit * rows_together), 0,
         stream, arguments);
}

}  // namespace replayeval::cuda
