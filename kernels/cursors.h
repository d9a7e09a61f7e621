// Moves the ring cursors of a block's slots; behind every family's advance_cursors(). Arguments have been checked.
#pragma once

#include "kernels/decode.h"

namespace replayeval::cpu {
void advance_cursors(const DecodeBlock&, std::int64_t buffer_len, std::int32_t* cursor);
}

namespace replayeval::cuda {
// `stream` is a cudaStream_t.
void advance_cursors(void* stream, const DecodeBlock&, std::int64_t buffer_len, std::int32_t* cursor);
}  // namespace replayeval::cuda
