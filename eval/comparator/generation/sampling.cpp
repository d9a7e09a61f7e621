#include "eval/comparator/generation/sampling.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <algorithm>
#include <cmath>
#include <numeric>
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
    sum += std::exp((static_cast<double>(logits[token]) - largest) / choice.sampling.temperature);
    sums[static_cast<std::size_t>(token)] = sum;
  }
  const auto beyond = std::upper_bound(sums.begin(), sums.end(), choice.uniform * sum);
  return std::min<std::int64_t>(beyond - sums.begin(), vocab - 1);
}

// The same by falling logit, of the tokens that top_k and top_p leave.
std::int64_t draw_in_limited_row(const float* logits, std::int64_t vocab, const Choice& choice) {
  const Sampling& sampling = choice.sampling;
  std::vector<std::int64_t> order(static_cast<std::size_t>(vocab));
  std::iota(order.begin(), order.end(), 0);
  const std::int64_t count = sampling.top_k > 0 ? std::min(sampling.top_k, vocab) : vocab;
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int64_t a, std::int64_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  order.resize(static_cast<std::size_t>(count));
  std::vector<double> sums;
  double sum = 0.0;
  for (const std::int64_t token : order) {
    sum +=
        std::exp((static_cast<double>(logits[token]) - static_cast<double>(logits[order[0]])) / sampling.temperature);
    sums.push_back(sum);
  }
  std::size_t kept = 1;
  while (kept < sums.size() && sums[kept - 1] < sampling.top_p * sum) ++kept;
  sums.resize(kept);
  const auto beyond = std::upper_bound(sums.begin(), sums.end(), choice.uniform * sums.back());
  return order[std::min(static_cast<std::size_t>(beyond - sums.begin()), kept - 1)];
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
      if (!choice.sampling.draws()) continue;
      chosen[row] = choice.sampling.is_limited() ? draw_in_limited_row(values + row * vocab, vocab, choice)
                                                 : draw_in_row(values + row * vocab, vocab, choice, sums);
    }
  });
  return tokens;
}

// What each row's draw is made of, [rows, 1] each on the device.
struct DeviceChoices {
  at::Tensor temperature, uniform, top_p;  // float64
  at::Tensor top_k;                        // float64, too: whole numbers
  at::Tensor limited;                      // bool
};

// One copy to the device.
DeviceChoices choices_on(const at::Device& device, const std::vector<Choice>& choices, std::int64_t vocab) {
  std::vector<double> numbers;
  for (const Choice& choice : choices) numbers.push_back(choice.sampling.draws() ? choice.sampling.temperature : 1.0);
  for (const Choice& choice : choices) numbers.push_back(choice.uniform);
  for (const Choice& choice : choices) numbers.push_back(choice.sampling.top_p);
  for (const Choice& choice : choices)
    numbers.push_back(static_cast<double>(choice.sampling.top_k > 0 ? choice.sampling.top_k : vocab));
  for (const Choice& choice : choices) numbers.push_back(choice.sampling.is_limited() ? 1.0 : 0.0);
  const at::Tensor table =
      at::tensor(numbers, at::kDouble).view({5, static_cast<std::int64_t>(choices.size()), 1}).to(device);
  return {table[0], table[1], table[2], table[3], table[4].gt(0.5)};
}

// As draw_in_limited_row().
at::Tensor draw_limited_on_device(const at::Tensor& logits, const DeviceChoices& choices) {
  const auto [values, ids] = logits.sort(/*stable=*/true, -1, /*descending=*/true);
  const at::Tensor shifted = (values - values.narrow(-1, 0, 1)).to(at::kDouble);
  const at::Tensor place = at::arange(logits.size(-1), at::TensorOptions().dtype(at::kDouble).device(logits.device()));
  const at::Tensor weights = shifted.div_(choices.temperature).exp_().mul_(place.lt(choices.top_k));
  const at::Tensor sums = weights.cumsum(-1);
  const at::Tensor total = sums.narrow(-1, sums.size(-1) - 1, 1);
  // The first token always, and those before which there is less than top_p.
  const at::Tensor before = at::constant_pad_nd(sums.narrow(-1, 0, sums.size(-1) - 1), {1, 0}, -1.0);
  const at::Tensor kept = before.lt(choices.top_p * total).logical_and_(place.lt(choices.top_k));
  const at::Tensor mass = sums.mul(kept).amax(-1, true);
  const at::Tensor index = sums.le(choices.uniform * mass).sum(-1, true).minimum(kept.sum(-1, true) - 1);
  return ids.gather(-1, index).squeeze(-1);
}

// On a GPU each row is scanned by threads of its own, in an order that vocab alone fixes; a single row would be scanned
// otherwise, so it gets company.
at::Tensor draw_on_device(const at::Tensor& logits, const std::vector<Choice>& choices) {
  if (logits.size(0) == 1)
    return draw_on_device(logits.repeat({2, 1}), {choices.front(), choices.front()}).narrow(0, 0, 1);
  const DeviceChoices there = choices_on(logits.device(), choices, logits.size(-1));
  const at::Tensor shifted = (logits - logits.amax(-1, true)).to(at::kDouble);
  const at::Tensor sums = shifted.div_(there.temperature).exp_().cumsum_(-1);
  const at::Tensor at = there.uniform * sums.narrow(-1, sums.size(-1) - 1, 1);
  // How many sums lie at or below the draw: the first token whose sum is beyond it.
  const at::Tensor tokens = sums.le(at).sum(-1).clamp_max_(sums.size(-1) - 1);
  const bool some_limited =
      std::any_of(choices.begin(), choices.end(), [](const Choice& choice) { return choice.sampling.is_limited(); });
  return some_limited ? at::where(there.limited.squeeze(-1), draw_limited_on_device(logits, there), tokens) : tokens;
}

at::Tensor drawn(const at::Tensor& logits, const std::vector<Choice>& choices) {
  return logits.is_cpu() ? draw_on_cpu(logits, choices) : draw_on_device(logits, choices);
}

}  // namespace

std::string fault_of(const Sampling& sampling) {
  if (!(sampling.temperature >= 0.0) || !std::isfinite(sampling.temperature))
    return "temperature is " + std::to_string(sampling.temperature) + "; expected a finite number, 0 or more";
  if (!(sampling.top_p > 0.0 && sampling.top_p <= 1.0))
    return "top_p is " + std::to_string(sampling.top_p) + "; expected a number above 0, at most 1";
  if (sampling.top_k < 0) return "top_k is " + std::to_string(sampling.top_k) + "; expected 0 or more";
  return "";
}

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
  const auto draws = [](const Choice& choice) { return choice.sampling.draws(); };
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
