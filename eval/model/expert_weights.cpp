#include "eval/model/expert_weights.h"

#include <ATen/ATen.h>

namespace replayeval {

at::Tensor load_experts(HybridBuilder& builder, const ExpertTensors& names, std::int64_t experts, std::int64_t out,
                        std::int64_t in) {
  WeightLoader& weights = builder.weights();
  const std::vector<std::int64_t> shape = {experts, out, in};
  for (const std::string& name : names.stacked)
    if (weights.has(name)) return weights.load(name, shape, builder.compute_dtype());
  if (names.each.empty()) return weights.load(names.stacked.front(), shape, builder.compute_dtype());
  at::Tensor all = at::empty(shape, at::TensorOptions().device(builder.device()).dtype(builder.compute_dtype()));
  const std::int64_t rows = out / static_cast<std::int64_t>(names.leaves.size());
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const std::string name = names.each + "." + std::to_string(expert) + ".";
    std::int64_t begin = 0;
    for (const std::string& leaf : names.leaves) {
      weights.load_into(name + leaf, all.select(0, expert).narrow(0, begin, rows));
      begin += rows;
    }
  }
  return all;
}

}  // namespace replayeval
