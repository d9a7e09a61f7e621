#include "eval/comparator/generation/sampling.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace replayeval {
namespace {

// One row, on the CPU. ATen's vector loops there end in scalar ones, so that an element's last bit depends on where in
// the buffer it stands; this loop's does not.
std::int64_t draw_in_row(const float* logits, std::int64_t vocab, const Choice& choice, std::vector<double>& sums) {
  const double largest = *std::max_element(logits, logits + vocab);
  double sum = 0.0;
  for (std::int64_t token = 0; token < vocab; ++token) {
    sum += std::exp((static_cast<double>(logits[token]) - largest) / choice.temperature);
    sums[static_cast<std::size_t>(token)] = sum;
  }
  const auto beyond = std::upper_bound(sums.begin(), sums.end(), choice.uniform * sum);
  return std::min<std::int64_t>(beyond - sums.begin(), vocab - 1);
}

at::Tensor draw_on_cpu(const at::Tensor& logits, const std::vector<Choice>& choices) {
  const at::Tensor rows = logits.contiguous();
  at::Tensor tokens = at::zeros({rows.size(0)}, at::kLong);
  const auto vocab = rows.size(1);
  const auto* values = rows.const_data_ptr<float>();
  auto* chosen = tokens.mutable_data_ptr<std::int64_t>();
  at::parallel_for(0, rows.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sums(static_cast<std::size_t>(vocab));
    for (std::int64_t row = begin; row < end; ++row) {
      const Choice& choice = choices[static_cast<std::size_t>(row)];
      if (choice.temperature > 0.0) chosen[row] = draw_in_row(values + row * vocab, vocab, choice, sums);
    }
  });
  return tokens;
}

// On a GPU each row is scanned by threads of its own, in an order that vocab alone fixes; a single row would be scanned
// otherwise, so it gets company.
at::Tensor draw_on_device(const at::Tensor& logits, const std::vector<Choice>& choices) {
  if (logits.size(0) == 1)
    return draw_on_device(logits.repeat({2, 1}), {choices.front(), choices.front()}).narrow(0, 0, 1);
  std::vector<double> numbers;  // temperatures, then uniforms; one copy to the device
  for (const Choice& choice : choices) numbers.push_back(choice.temperature > 0.0 ? choice.temperature : 1.0);
  for (const Choice& choice : choices) numbers.push_back(choice.uniform);
  const at::Tensor both =
      at::tensor(numbers, at::kDouble).view({2, static_cast<std::int64_t>(choices.size()), 1}).to(logits.device());
  const at::Tensor shifted = (logits - logits.amax(-1, true)).to(at::kDouble);
  const at::Tensor sums = shifted.div_(both[0]).exp_().cumsum_(-1);
  const at::Tensor at = both[1] * sums.narrow(-1, sums.size(-1) - 1, 1);
  // How many sums lie at or below the draw: the first token whose sum is beyond it.
  return sums.le(at).sum(-1).clamp_max_(sums.size(-1) - 1);
}

at::Tensor drawn(const at::Tensor& logits, const std::vector<Choice>& choices) {
  return logits.is_cpu() ? draw_on_cpu(logits, choices) : draw_on_device(logits, choices);
}

}  // namespace

double uniform_of(const Draw& draw) {
  // The engine has a 64-bit key, a 64-bit subsequence and an offset; items and repeats share the subsequence.
  at::Philox4_32 engine(draw.seed, (draw.item << 20U) ^ draw.repeat, draw.position);
  const std::uint64_t high = engine(), low = engine();
  return static_cast<double>(((high << 32U) | low) >> 11U) * 0x1p-53;
}

ChosenTokens choose_tokens(const at::Tensor& logits, const std::vector<Choice>& choices, double spacing) {
  const auto rows = static_cast<std::size_t>(logits.size(0));
  if (choices.size() != rows)
    throw std::invalid_argument("choices: " + std::to_string(choices.size()) + " for " + std::to_string(rows) +
                                " rows of logits; expected one each");
  const auto draws = [](const Choice& choice) { return choice.temperature > 0.0; };
  // [4, rows]: whether all logits are finite, the largest, whether another equals it, the drawn; one copy to the host.
  std::vector<at::Tensor> found = {at::isfinite(logits).all(-1).to(at::kLong), logits.argmax(-1)};
  if (std::all_of(choices.begin(), choices.end(), draws)) {
    found.push_back(at::zeros_like(found[1]));
  } else {
    const at::Tensor largest = std::get<0>(logits.topk(2, -1));
    const at::Tensor first = largest.select(-1, 0), second = largest.select(-1, 1);
    found.push_back((first - second).le(first.abs().maximum(second.abs()) * spacing).to(at::kLong));
  }
  const bool some_draw = std::any_of(choices.begin(), choices.end(), draws);
  found.push_back(some_draw ? drawn(logits, choices).to(at::kLong) : found[1]);
  const at::Tensor table = at::stack(found).cpu();
  const auto* values = table.const_data_ptr<std::int64_t>();
  ChosenTokens chosen;
  for (std::size_t row = 0; row < rows; ++row) {
    if (values[row] == 0 && !chosen.not_finite) chosen.not_finite = row;
    const bool draw = draws(choices[row]);
    chosen.tokens.push_back(static_cast<std::int32_t>(values[(draw ? 3 : 1) * rows + row]));
    chosen.ties.push_back(!draw && values[2 * rows + row] != 0);
  }
  return chosen;
}

}  // namespace replayeval
