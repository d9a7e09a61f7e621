#include "eval/comparator/prompt.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace replayeval {

void prefill_slot(const Model& model, std::span<const std::int32_t> tokens, std::int64_t block, DecodeCache& prompts,
                  DecodeCache& cache, std::int64_t slot) {
  if (tokens.empty()) return;
  const std::vector<std::int64_t> ids(tokens.begin(), tokens.end());
  const at::Tensor row = at::tensor(ids, at::kLong).unsqueeze(0);
  prompts.reset();
  for (std::int64_t begin = 0; begin < row.size(1); begin += block)
    model.forward(row.narrow(1, begin, std::min(block, row.size(1) - begin)), prompts, Mode::teacher_forced);
  cache.store_prefilled(slot, prompts, 0);
}

}  // namespace replayeval
