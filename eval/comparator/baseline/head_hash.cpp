#include "eval/comparator/baseline/head_hash.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

#include "datasets/sha256.h"
#include "eval/executors/device.h"

namespace replayeval {

std::string head_sha256(const Model& model) {
  constexpr std::int64_t logits_bytes = std::int64_t{64} << 20;
  const std::int64_t row_bytes = model.vocab_size() * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t rows = std::max<std::int64_t>(1, logits_bytes / row_bytes);
  const ModelOptions& of = model.options();
  const at::Device device = of.placement ? of.placement->head : torch_device(of.device);
  const at::TensorOptions options = at::TensorOptions().device(device).dtype(scalar_type(of.compute_dtype));
  datasets::Sha256 hash;
  for (std::int64_t first = 0; first < model.hidden_size(); first += rows) {
    const std::int64_t count = std::min(rows, model.hidden_size() - first);
    const at::Tensor units = at::zeros({count, model.hidden_size()}, options);
    units.diagonal(first).fill_(1.0);
    // 0 takes the place of -0, whose sign is an accident of the order of sums.
    const at::Tensor logits = model.logits(units).cpu().add_(0.0).contiguous();
    hash.update(std::span(static_cast<const std::byte*>(logits.const_data_ptr()), logits.nbytes()));
  }
  return hash.hex();
}

}  // namespace replayeval
