#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "eval/model/row_kernels_cuda.h"

namespace replayeval {
namespace {

constexpr int kMaxThreads = 512;

__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float widen(__half x) { return __half2float(x); }
template <class T>
__device__ __forceinline__ T narrow(float x);
template <>
__device__ __forceinline__ float narrow<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half narrow<__half>(float x) {
  return __float2half_rn(x);
}

// Elements that one thread moves at once.
constexpr std::size_t kWidestMove = 16;  // bytes
template <class T, int n>
struct alignas(sizeof(T) * n < kWidestMove ? sizeof(T) * n : kWidestMove) Pack {
  T at[n];
};
constexpr int kPacksHeld = 4;
template <class T>
constexpr int kWhole = kWidestMove / sizeof(T);

// The thread's own sum first, then the warp's by halves, then the warps' in order.
__device__ __forceinline__ float block_sum(float value) {
  __shared__ float warps[kMaxThreads / 32];
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0F;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += warps[warp];
  return sum;
}

// A thread's elements of a row, n at once, between the sum of their squares and its use; where a row has more than fit
// into registers, those behind are read again.
template <class In, int n, bool adds>
struct HeldRow {
  static constexpr int kHeld = kPacksHeld;
  const Pack<In, n>*x, *addend;
  Pack<In, n>* sum;
  Pack<In, n> held[kHeld];

  __device__ __forceinline__ HeldRow(const RmsNormRows& norm, std::int64_t first)
      : x(reinterpret_cast<const Pack<In, n>*>(static_cast<const In*>(norm.x) + first)),
        addend(reinterpret_cast<const Pack<In, n>*>(static_cast<const In*>(norm.addend) + first)),
        sum(reinterpret_cast<Pack<In, n>*>(static_cast<In*>(norm.sum) + first)) {}

  // Reads a pack for the first time: of x, or of the sum, which it stores.
  __device__ __forceinline__ Pack<In, n> take(int i) const {
    Pack<In, n> pack = x[i];
    if constexpr (adds) {
      const Pack<In, n> other = addend[i];
#pragma unroll
      for (int j = 0; j < n; ++j) pack.at[j] = narrow<In>(widen(pack.at[j]) + widen(other.at[j]));
      sum[i] = pack;
    }
    return pack;
  }
  __device__ __forceinline__ Pack<In, n> again(int i) const { return adds ? sum[i] : x[i]; }

  // use(i, pack) for the thread's packs, in order; `first`: the first of two times.
  template <bool first, class Use>
  __device__ __forceinline__ void for_each(int packs, const Use& use) {
    const auto stride = static_cast<int>(blockDim.x);
    auto i = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int k = 0; k < kHeld; ++k, i += stride) {
      if (i >= packs) continue;
      if constexpr (first) held[k] = take(i);
      use(i, held[k]);
    }
    for (; i < packs; i += stride) use(i, first ? take(i) : again(i));
  }
};

// A block takes a row; n elements a thread at once.
template <class In, class Out, int n, bool adds>
__global__ void __launch_bounds__(kMaxThreads) rms_norm_kernel(const RmsNormRows norm) {
  const auto packs = static_cast<int>(norm.width / n);
  const std::int64_t first = blockIdx.x * norm.width;
  const auto* weight = reinterpret_cast<const Pack<float, n>*>(norm.weight);
  auto* out = reinterpret_cast<Pack<Out, n>*>(static_cast<Out*>(norm.out) + first);
  HeldRow<In, n, adds> row(norm, first);
  float squares = 0.0F;
  row.template for_each<true>(packs, [&](int /*i*/, const Pack<In, n>& pack) {
#pragma unroll
    for (int j = 0; j < n; ++j) squares = fmaf(widen(pack.at[j]), widen(pack.at[j]), squares);
  });
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(norm.width) + norm.eps);
  row.template for_each<false>(packs, [&](int i, const Pack<In, n>& pack) {
    const Pack<float, n> scales = weight[i];
    Pack<Out, n> result;
#pragma unroll
    for (int j = 0; j < n; ++j) result.at[j] = narrow<Out>(widen(pack.at[j]) * scale * scales.at[j]);
    out[i] = result;
  });
}

template <class T, int n>
__global__ void squared_relu_kernel(const T* x, T* out, std::int64_t packs) {
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    Pack<T, n> pack = reinterpret_cast<const Pack<T, n>*>(x)[i];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float value = widen(pack.at[j]);
      pack.at[j] = narrow<T>(value <= 0.0F ? 0.0F : value * value);  // NaN stays
    }
    reinterpret_cast<Pack<T, n>*>(out)[i] = pack;
  }
}

bool is_aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

void expect_launched(const char* what) {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

// use.template operator()<T>() with the element type.
template <class Use>
void with_type(Dtype dtype, const Use& use) {
  switch (dtype) {
    case Dtype::bfloat16:
      return use.template operator()<__nv_bfloat16>();
    case Dtype::float16:
      return use.template operator()<__half>();
    case Dtype::float32:
      return use.template operator()<float>();
  }
}

template <class In, class Out, int n>
void launch_rms_norm(cudaStream_t stream, const RmsNormRows& norm) {
  constexpr int at_once = 32 * kPacksHeld;  // packs of a warp
  const auto threads =
      static_cast<unsigned>(std::clamp<std::int64_t>((norm.width / n + at_once - 1) / at_once * 32, 32, kMaxThreads));
  const auto rows = static_cast<unsigned>(norm.rows);
  if (norm.addend == nullptr) {
    rms_norm_kernel<In, Out, n, false><<<rows, threads, 0, stream>>>(norm);
  } else {
    rms_norm_kernel<In, Out, n, true><<<rows, threads, 0, stream>>>(norm);
  }
  expect_launched("rms_norm");
}

}  // namespace

void rms_norm_rows(void* stream, const RmsNormRows& norm) {
  if (norm.rows == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  with_type(norm.in, [&]<class In>() {
    with_type(norm.out_dtype, [&]<class Out>() {
      constexpr int whole = kWhole<In>;
      const auto packs = [&](const void* pointer, std::size_t size) {
        return is_aligned(pointer, std::min(size * whole, kWidestMove));
      };
      if (norm.width % whole == 0 && packs(norm.x, sizeof(In)) && packs(norm.addend, sizeof(In)) &&
          packs(norm.sum, sizeof(In)) && packs(norm.out, sizeof(Out)) && packs(norm.weight, sizeof(float)))
        launch_rms_norm<In, Out, whole>(on, norm);
      else
        launch_rms_norm<In, Out, 1>(on, norm);
    });
  });
}

void squared_relu_elements(void* stream, const void* x, void* out, std::int64_t count, Dtype dtype) {
  if (count == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  constexpr unsigned threads = 256;
  constexpr std::int64_t most_blocks = 132 * 16;
  with_type(dtype, [&]<class T>() {
    constexpr int whole = kWhole<T>;
    const bool packs = count % whole == 0 && is_aligned(x, kWidestMove) && is_aligned(out, kWidestMove);
    const std::int64_t work = packs ? count / whole : count;
    const auto blocks = static_cast<unsigned>(std::min(most_blocks, (work + threads - 1) / threads));
    if (packs)
      squared_relu_kernel<T, whole><<<blocks, threads, 0, on>>>(static_cast<const T*>(x), static_cast<T*>(out), work);
    else
      squared_relu_kernel<T, 1><<<blocks, threads, 0, on>>>(static_cast<const T*>(x), static_cast<T*>(out), work);
    expect_launched("squared_relu");
  });
}

}  // namespace replayeval
