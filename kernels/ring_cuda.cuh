// Brings parts of a ring to a block's shared memory, as float32 but holding the values that the ring does.
#pragma once

#include "kernels/bulk_cuda.cuh"
#include "kernels/storage_cuda.cuh"

namespace replayeval::cuda {

// dtype: float32 or bfloat16.
__device__ __forceinline__ void load_ring4(const void* ring, std::int64_t index, Dtype dtype, float (&to)[4]) {
  if (dtype == Dtype::float32) {
    load4<Dtype::float32>(ring, index, to);
  } else {
    load4<Dtype::bfloat16>(ring, index, to);
  }
}

// Has `width` elements of each of `count` entries, `stride` elements apart, on their way to the cache; by all threads
// of a block, each as good as alone.
__device__ __forceinline__ void prefetch_entries(const void* ring, Dtype dtype, std::int64_t first, int stride,
                                                 int count, int width) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr int kLine = 128;
  const int size = dtype == Dtype::float32 ? 4 : 2;
  const int lines = (width * size + kLine - 1) / kLine;
  const char* from = static_cast<const char*>(ring) + first * size;
  for (int i = static_cast<int>(threadIdx.x); i < count * lines; i += static_cast<int>(blockDim.x)) {
    prefetch(from + i / lines * stride * size + i % lines * kLine);
  }
#endif
}

// `count` groups of four elements, four a thread under way at once. source(i) and target(i) say where group i comes
// from and goes to.
template <class Source, class Target>
__device__ __forceinline__ void copy_ring4(const void* ring, Dtype dtype, int count, const Source& source,
                                           const Target& target) {
  constexpr int kAtOnce = 4;
  for (int base = static_cast<int>(threadIdx.x); base < count; base += kAtOnce * static_cast<int>(blockDim.x)) {
    float v[kAtOnce][4];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = base + k * static_cast<int>(blockDim.x);
      if (i < count) load_ring4(ring, source(i), dtype, v[k]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = base + k * static_cast<int>(blockDim.x);
      if (i < count) *reinterpret_cast<float4*>(target(i)) = make_float4(v[k][0], v[k][1], v[k][2], v[k][3]);
    }
  }
}

}  // namespace replayeval::cuda
