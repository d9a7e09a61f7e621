// Groups that threads hold in registers: a row is read once and written once. A thread has vectors of eight elements of
// a group; a block's rows share its weights, which come from the near cache then.
#pragma once

#include "kernels/elements_cuda.cuh"
#include "kernels/gated_norm/arguments_cuda.cuh"

namespace replayeval::cuda {

inline constexpr int kVectorElements = 8;
inline constexpr int kHeldVectors = 2;  // of a thread
inline constexpr int kMostGroupThreads = 512;
inline constexpr std::int64_t kMostHeldGroup = std::int64_t{kMostGroupThreads} * kHeldVectors * kVectorElements;

struct HeldGroupArguments {
  GatedNorm norm;
  int groups = 0;       // of a row
  int thread_bits = 0;  // a group has 1 << thread_bits threads, or if that is a warp all along x
};

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
  int threads;              // that share the group

  __device__ __forceinline__ explicit HeldPlace(const HeldGroupArguments& a) {
    const GatedNorm& n = a.norm;
    const auto thread = static_cast<int>(threadIdx.x);
    const bool whole = a.thread_bits == 5;
    threads = whole ? static_cast<int>(blockDim.x) : 1 << a.thread_bits;
    const int group = whole ? static_cast<int>(blockIdx.y)
                            : static_cast<int>(blockIdx.y * (blockDim.x >> a.thread_bits)) + (thread >> a.thread_bits);
    const int begin = (whole ? thread : thread & (threads - 1)) * kVectorElements;
    row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    first = group * n.group_size + begin;
    left = row < n.rows && group < a.groups ? static_cast<int>(n.group_size) - begin : 0;
    step = threads * kVectorElements;
  }
  __device__ __forceinline__ int count(int vector) const { return left - vector * step; }
};

// One vector on its way from y, z and the weight to the output.
template <GateForm kForm, class Y, class Z, class Weight>
struct HeldVector {
  Y y;
  Z z;
  Weight weight;
  float h[kVectorElements], gate[kVectorElements];

  __device__ __forceinline__ void load(const GatedNorm& n, std::int64_t row, std::int64_t at, int count) {
    y.load(n.y, row * n.y_stride + at, n.y_dtype, count);
    z.load(n.z, row * n.z_stride + at, n.dtype, count);
  }
  // Adds to the sum of squares, element by element.
  __device__ __forceinline__ void gate_input(const GatedNorm& n, float& squares) {
#pragma unroll
    for (int i = 0; i < kVectorElements; ++i) gate[i] = z.value(i);
    gate_factors(n.activation == GateActivation::silu, gate);
#pragma unroll
    for (int i = 0; i < kVectorElements; ++i) {
      h[i] = norm_input<kForm>(y.value(i), gate[i]);
      squares = fmaf(h[i], h[i], squares);  // of an element past the group's end, 0
    }
  }
  __device__ __forceinline__ void store(const GatedNorm& n, std::int64_t row, std::int64_t at, int count,
                                        float inverse) const {
    float out[kVectorElements];
#pragma unroll
    for (int i = 0; i < kVectorElements; ++i) {
      const float factor = kForm == GateForm::gate_only ? 0.0F : weight.value(i);
      out[i] = norm_output<kForm>(h[i], gate[i], inverse, factor);
    }
    Z::store(out, n.out, row * n.out_stride + at, n.dtype, count);
  }
};

template <GateForm kForm, class Y, class Z, class Weight>
__global__ void __launch_bounds__(kMostGroupThreads) held_group_kernel(const __grid_constant__ HeldGroupArguments a) {
  wait_for_earlier_launches();
  let_later_launches_begin();
  const GatedNorm& n = a.norm;
  const HeldPlace place(a);
  HeldVector<kForm, Y, Z, Weight> vectors[kHeldVectors];
  const auto each_vector = [&](const auto& call) {
#pragma unroll
    for (int v = 0; v < kHeldVectors; ++v) {
      if (place.count(v) > 0) call(vectors[v], place.first + v * place.step, place.count(v));
    }
  };
  each_vector([&](auto& vector, std::int64_t at, int count) { vector.load(n, place.row, at, count); });
  float squares = 0.0F;
  each_vector([&](auto& vector, std::int64_t, int) { vector.gate_input(n, squares); });
  float inverse = 1.0F;
  if constexpr (kForm != GateForm::gate_only) {
    each_vector(
        [&](auto& vector, std::int64_t at, int count) { vector.weight.load(n.weight, at, Dtype::float32, count); });
    inverse = inverse_root(group_sum(squares, place.threads), n);
  }
  each_vector([&](auto& vector, std::int64_t at, int count) { vector.store(n, place.row, at, count, inverse); });
}

// Of a group of `size` elements.
inline int threads_of_group(std::int64_t size) {
  const std::int64_t needed = (size + kVectorElements * kHeldVectors - 1) / (kVectorElements * kHeldVectors);
  if (needed > 32) return static_cast<int>((needed + 31) / 32 * 32);
  int threads = 1;
  while (threads < needed) threads *= 2;
  return threads;
}

template <GateForm kForm, class Y, class Z, class Weight>
void launch_held_groups(cudaStream_t stream, const GatedNorm& norm) {
  const int threads = threads_of_group(norm.group_size);
  HeldGroupArguments arguments{norm, static_cast<int>(norm.width / norm.group_size), 0};
  while (1 << arguments.thread_bits < std::min(threads, 32)) ++arguments.thread_bits;
  const int unit = std::max(threads, 32);
  const std::int64_t groups_together = unit / threads;
  const std::int64_t units = (arguments.groups + groups_together - 1) / groups_together;
  const std::int64_t rows_together = std::max(1, kNormThreads / unit);
  const std::int64_t blocks = (norm.rows + rows_together - 1) / rows_together;
  if (units > kMaxGridYZ || blocks > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("gated_norm: " + std::to_string(norm.rows) + " rows of " + std::to_string(norm.width) +
                                " elements are too many for a call");
  }
  launch(held_group_kernel<kForm, Y, Z, Weight>, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(units)),
         dim3(static_cast<unsigned>(unit), static_cast<unsigned>(rows_together)), 0, stream, arguments);
}

}  // namespace replayeval::cuda
