#include "eval/model/random_weights.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string_view>

namespace replayeval {
namespace {

// FNV-1a over the name, then the finaliser of splitmix64, so that near seeds have nothing in common.
std::uint64_t stream_of(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31);
}

at::Generator generator_on(const at::Device& device, std::uint64_t stream) {
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(stream);
  return generator;
}

// The last part of a dotted name, and the one before it.
std::pair<std::string_view, std::string_view> last_parts(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {name, {}};
  const std::string_view rest = name.substr(0, dot);
  const std::size_t before = rest.rfind('.');
  return {name.substr(dot + 1), before == std::string_view::npos ? rest : rest.substr(before + 1)};
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

void fill_time_step_bias(const at::Tensor& weight, const at::Generator& generator) {
  const double low = std::log(1e-3), high = std::log(1e-1);
  const at::Tensor wide = at::empty(weight.sizes(), weight.options().dtype(at::kFloat));
  const at::Tensor dt = wide.uniform_(low, high, generator).exp_();
  weight.copy_(dt.add(at::log(at::expm1(dt.neg()).neg())));  // log(exp(dt) - 1)
}

}  // namespace

void fill_random(const at::Tensor& weight, const std::string& name, std::uint64_t seed) {
  if (weight.numel() == 0) return;
  const auto [last, before] = last_parts(name);
  const at::Generator generator = generator_on(weight.device(), stream_of(name, seed));
  if (last == "A_log")
    weight.copy_(at::linspace(1.0, 16.0, weight.numel(), weight.options().dtype(at::kFloat)).log_().view_as(weight));
  else if (last == "dt_bias")
    fill_time_step_bias(weight, generator);
  else if (last == "D" || holds(last, "norm") || (last == "weight" && weight.dim() == 1 && holds(before, "norm")))
    weight.fill_(1.0);
  else if (last == "bias" || last.ends_with("_bias"))
    weight.zero_();
  else if (holds(before, "embed") || holds(last, "embed"))
    weight.normal_(0.0, 0.02, generator);
  else
    weight.normal_(0.0, 1.0 / std::sqrt(static_cast<double>(weight.dim() == 0 ? 1 : weight.size(-1))), generator);
}

}  // namespace replayeval
