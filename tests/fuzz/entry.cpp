// libFuzzer's door to the target that REPLAYEVAL_FUZZ_TARGET names.
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  replayeval::fuzz::REPLAYEVAL_FUZZ_TARGET({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
