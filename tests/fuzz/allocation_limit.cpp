#include <cstdio>
#include <cstdlib>
#include <new>

#include "tests/fuzz/targets.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPLAYEVAL_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define REPLAYEVAL_ADDRESS_SANITIZER
#endif

namespace {

constexpr std::size_t none = ~std::size_t{0};
thread_local std::size_t limit = none;

void check(std::size_t size) {
  if (size <= limit) return;
  const std::size_t allowed = limit;
  limit = none;
  std::fprintf(stderr, "an allocation of %zu bytes; expected at most %zu for an input of this size\n", size, allowed);
  std::abort();
}

}  // namespace

#ifdef REPLAYEVAL_ADDRESS_SANITIZER
// As sanitizer/allocator_interface.h has it, a header that g++'s packages lack.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                                         void (*free_hook)(const volatile void*));

namespace {

// The sanitizer's runtime owns operator new, and tells of every allocation.
const int hooks = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void* /*memory*/, std::size_t size) { check(size); }, [](const volatile void* /*memory*/) {});

}  // namespace
#else
namespace {

void* allocate(std::size_t size) {
  check(size);
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace replayeval::fuzz {

AllocationLimit::AllocationLimit(std::size_t input_size) {
#ifdef REPLAYEVAL_ADDRESS_SANITIZER
  if (hooks == 0) std::abort();
#endif
  limit = 64 * input_size + (std::size_t{4} << 20);
}
AllocationLimit::~AllocationLimit() { limit = none; }

}  // namespace replayeval::fuzz
