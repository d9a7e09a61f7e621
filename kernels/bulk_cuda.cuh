// Hopper's bulk copies from global to shared memory, the barriers that they complete on, and the overlap of a launch
// with the one before it (PTX ISA: cp.async.bulk, mbarrier, griddepcontrol). sm_90 and later: for an older GPU this
// compiles to a trap, and has_bulk_copies() tells a launch to stay away.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define REPLAYEVAL_HOPPER(...) asm volatile(__VA_ARGS__)
#else
#define REPLAYEVAL_HOPPER(...) __trap()
#endif

namespace replayeval::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

// An mbarrier in shared memory. A phase ends when `count` arrivals and all bytes expected by them have come.
class Barrier {
 public:
  // By one thread; others may use it after fence_barriers() and __syncthreads().
  __device__ __forceinline__ void init(unsigned count) {
    REPLAYEVAL_HOPPER("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&word_)), "r"(count) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    REPLAYEVAL_HOPPER("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&word_)) : "memory");
  }
  __device__ __forceinline__ void arrive_expecting(unsigned bytes) {
    REPLAYEVAL_HOPPER("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&word_)), "r"(bytes)
                      : "memory");
  }
  // Bytes that this phase waits for too, without arriving.
  __device__ __forceinline__ void expect(unsigned bytes) {
    REPLAYEVAL_HOPPER("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&word_)),
                      "r"(bytes)
                      : "memory");
  }
  // Until the phase of this parity (0 for the first) has ended.
  __device__ __forceinline__ void wait(unsigned parity) {
    [[maybe_unused]] const std::uint32_t address = shared_address(&word_);
    std::uint32_t ended = 0;
    do {
      REPLAYEVAL_HOPPER(
          "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
          : "=r"(ended)
          : "r"(address), "r"(parity)
          : "memory");
    } while (ended == 0);
  }

 private:
  std::uint64_t word_;
};

__device__ __forceinline__ void fence_barriers() {
  REPLAYEVAL_HOPPER("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Adds `bytes` to what has come to `barrier` when done. Addresses and size are multiples of 16.
__device__ __forceinline__ void copy_bulk(void* shared, const void* global, unsigned bytes, Barrier& barrier) {
  REPLAYEVAL_HOPPER("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                        shared_address(shared)),
                    "l"(global), "r"(bytes), "r"(shared_address(&barrier))
                    : "memory");
}

// Asks for memory to be in the L2 cache soon: nothing that a program can see, so allowed before
// wait_for_earlier_launches(). Address and size are multiples of 16.
__device__ __forceinline__ void prefetch_bulk(const void* global, unsigned bytes) {
  REPLAYEVAL_HOPPER("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}
__device__ __forceinline__ void prefetch(const void* global) {
  REPLAYEVAL_HOPPER("prefetch.global.L2 [%0];" ::"l"(global) : "memory");
}

// What this thread did with shared memory, loads too, comes before later copies to it, once others know of it.
__device__ __forceinline__ void fence_before_copies() {
  REPLAYEVAL_HOPPER("fence.proxy.async.shared::cta;" ::: "memory");
}

// A launch that may overlap with the one before it does nothing to global memory, not even reads whose values matter,
// before this.
__device__ __forceinline__ void wait_for_earlier_launches() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The next launch may begin as soon as multiprocessors have room for it.
__device__ __forceinline__ void let_later_launches_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace replayeval::cuda
