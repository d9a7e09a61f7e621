#include "eval/comparator/prompt.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "eval/comparator/interrupt.h"

namespace replayeval {
namespace {

void decode(const Model& model, const at::Tensor& ids, std::int64_t block, DecodeCache& prompts) {
  prompts.reset();
  for (std::int64_t begin = 0; begin < ids.size(1); begin += block) {
    stop_if_asked();
    model.forward(ids.narrow(1, begin, std::min(block, ids.size(1) - begin)), prompts, Mode::teacher_forced);
  }
}

}  // namespace

void prefill_slot(const Model& model, std::span<const std::int32_t> tokens, std::int64_t block, DecodeCache& prompts,
                  DecodeCache& cache, std::int64_t slot) {
  if (tokens.empty()) return;
  const std::vector<std::int64_t> ids(tokens.begin(), tokens.end());
  decode(model, at::tensor(ids, at::kLong).unsqueeze(0), block, prompts);
  cache.store_prefilled(slot, prompts, 0);
}

void prefill_slots(const Model& model, const at::Tensor& ids, std::int64_t block, DecodeCache& prompts,
                   DecodeCache& cache) {
  if (ids.size(1) == 0) return;
  decode(model, ids, block, prompts);
  for (std::int64_t slot = 0; slot < ids.size(0); ++slot) cache.store_prefilled(slot, prompts, slot);
}

}  // namespace replayeval
