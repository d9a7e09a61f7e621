#include "kernels/cursors.h"
#include "kernels/heads_cpu.h"

namespace replayeval::cpu {

void advance_cursors(const DecodeBlock& block, std::int64_t buffer_len, std::int32_t* cursor) {
  for (std::int64_t row = 0; row < block.batch; ++row) {
    const std::int64_t slot = slot_of(block, row);
    if (slot >= 0) cursor[slot] = static_cast<std::int32_t>((cursor[slot] + block.tokens) % buffer_len);
  }
}

}  // namespace replayeval::cpu
