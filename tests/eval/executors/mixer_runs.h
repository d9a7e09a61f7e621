// Runs a mixer over a block in pieces.
#pragma once

#include <vector>

#include "tests/eval/executors/random_mixers.h"

namespace replayeval::testing {

struct MixerOutputs {
  MixerResult result;
  at::Tensor state;
};

// Runs `projected`, [B, T, projection], in pieces of the given lengths and joins what comes out.
inline MixerOutputs run_in_pieces(const Mixer& mixer, const Arm& arm, const at::Tensor& projected,
                                  const std::vector<std::int64_t>& pieces) {
  const std::int64_t batch = projected.size(0);
  MixerCache cache = mixer.make_cache(arm, batch, projected.scalar_type());
  std::vector<at::Tensor> y, out, conv;
  std::int64_t begin = 0;
  for (const std::int64_t length : pieces) {
    const MixerResult part = mixer.run(arm, cache, projected.narrow(1, begin, length).contiguous());
    advance_cursor(arm, cache.cursor, batch, length);
    y.push_back(part.y);
    out.push_back(part.out);
    conv.push_back(part.conv);
    begin += length;
  }
  return {{at::cat(y, 1), at::cat(out, 1), at::cat(conv, 1)}, mixer.present_state(arm, cache, batch)};
}

}  // namespace replayeval::testing
