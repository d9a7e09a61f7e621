#include "eval/comparator/generation/sampling.h"

#include <ATen/ATen.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <stdexcept>
#include <string>

namespace replayeval {
namespace {

void check_finite(const at::Tensor& logits) {
  const at::Tensor bad = at::isfinite(logits).all(-1).logical_not();
  if (!bad.any().item<bool>()) return;
  throw std::runtime_error("logits are not finite in row " + std::to_string(bad.nonzero()[0][0].item<std::int64_t>()) +
                           " of the batch; expected finite numbers");
}

at::Tensor draw_tokens(const at::Tensor& logits, double temperature, const std::vector<double>& uniforms) {
  const at::Tensor sums = at::softmax(logits.to(at::kDouble).div_(temperature), -1).cumsum_(-1);
  const at::Tensor total = sums.narrow(-1, sums.size(-1) - 1, 1);  // 1, but for rounding
  const at::Tensor at = at::tensor(uniforms, at::kDouble).to(logits.device()).unsqueeze(-1) * total;
  // How many sums lie at or below the draw: the first token whose sum is beyond it.
  return sums.le(at).sum(-1).clamp_max(sums.size(-1) - 1);
}

}  // namespace

double uniform_of(const Draw& draw) {
  // The engine has a 64-bit key, a 64-bit subsequence and an offset; items and repeats share the subsequence.
  at::Philox4_32 engine(draw.seed, (draw.item << 20U) ^ draw.repeat, draw.position);
  const std::uint64_t high = engine(), low = engine();
  return static_cast<double>(((high << 32U) | low) >> 11U) * 0x1p-53;
}

NextTokens choose_tokens(const at::Tensor& logits, double temperature, const std::vector<double>& uniforms,
                         double spacing) {
  check_finite(logits);
  const auto [values, indices] = logits.topk(2, -1);
  const at::Tensor first = values.select(-1, 0), second = values.select(-1, 1);
  const at::Tensor ties = (first - second).le(first.abs().maximum(second.abs()) * spacing);
  const at::Tensor tokens = temperature == 0.0 ? logits.argmax(-1) : draw_tokens(logits, temperature, uniforms);
  return {tokens.cpu(), ties.cpu()};
}

}  // namespace replayeval
