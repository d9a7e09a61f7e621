#include "eval/comparator/model_bench.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "eval/executors/device.h"
#include "eval/executors/device_memory.h"

namespace replayeval {
namespace {

constexpr std::int64_t fewest_steps = 16;
constexpr std::int64_t prompt_block = 256;

// One arm's sequences, ready to decode the next token.
struct Decoder {
  std::unique_ptr<DecodeCache> cache;
  at::Tensor next;  // [batch, 1] int64 on the model's device
};

// Past 2^32, more than any model has positions for, it is no multiple of all any more, but stays large.
std::int64_t steps_per_round(const std::vector<Arm>& arms) {
  constexpr std::int64_t large = std::int64_t{1} << 32;
  std::int64_t cycle = 1;
  for (const Arm& arm : arms)
    if (arm.executor == Executor::replay && cycle < large)
      cycle = std::lcm(cycle, static_cast<std::int64_t>(arm.replay.buffer_len));
  return cycle * ((fewest_steps + cycle - 1) / cycle);
}

void step(const Model& model, Decoder& decoder, KernelClock* clock = nullptr) {
  const at::Tensor hidden = model.forward(decoder.next, *decoder.cache, Mode::stepwise, clock);
  const KernelClock::Scope scope(clock, "", "head");
  decoder.next = model.logits(hidden.select(0, 0)).argmax(-1);
}

void run_steps(const Model& model, Decoder& decoder, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) step(model, decoder);
}

Decoder make_decoder(const Model& model, const Arm& arm, const at::Tensor& prompt, std::int64_t capacity) {
  Decoder decoder{model.make_cache({arm}, prompt.size(0), capacity), prompt.narrow(1, prompt.size(1) - 1, 1)};
  for (std::int64_t begin = 0; begin < prompt.size(1) - 1; begin += prompt_block) {
    const std::int64_t tokens = std::min(prompt_block, prompt.size(1) - 1 - begin);
    model.forward(prompt.narrow(1, begin, tokens), *decoder.cache, Mode::teacher_forced);
  }
  return decoder;
}

double timed_round(const Model& model, Decoder& decoder, std::int64_t steps, const at::Device& device) {
  synchronise(device);
  const auto start = std::chrono::steady_clock::now();
  run_steps(model, decoder, steps);
  synchronise(device);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(steps);
}

// The share of the clocked time that is spent in what arms differ in.
double mixer_share(const Model& model, Decoder& decoder, std::int64_t steps) {
  KernelClock clock(model.options().device);
  for (std::int64_t i = 0; i < steps; ++i) step(model, decoder, &clock);
  double mixers = 0.0, all = 0.0;
  for (const KernelSeconds& entry : clock.totals()) {
    all += entry.seconds;
    if (!entry.arm.empty()) mixers += entry.seconds;
  }
  return all == 0.0 ? 0.0 : mixers / all;
}

Spread spread_of(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  const std::size_t n = rounds.size();
  return {(rounds[(n - 1) / 2] + rounds[n / 2]) / 2.0, rounds.front(), rounds.back()};
}

// All arms at one batch size; they take turns, so that a clock that drifts drifts for all.
std::vector<DecodeSpeed> bench_batch(const Model& model, const std::vector<Arm>& arms, const ModelBenchOptions& options,
                                     std::int64_t batch, std::int64_t steps, std::int64_t capacity) {
  const at::Device device = torch_device(model.options().device);
  if (!device.is_cpu()) reset_peak_memory(device);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  const at::Tensor prompt =
      at::randint(0, model.vocab_size(), {batch, options.context + 1}, generator, at::TensorOptions().dtype(at::kLong))
          .to(device);
  std::vector<Decoder> decoders;
  for (const Arm& arm : arms) {
    decoders.push_back(make_decoder(model, arm, prompt, capacity));
    run_steps(model, decoders.back(), steps);  // warms up
  }
  std::vector<std::vector<double>> rounds(arms.size());
  for (std::int64_t round = 0; round < options.rounds; ++round)
    for (std::size_t arm = 0; arm < arms.size(); ++arm)
      rounds[arm].push_back(timed_round(model, decoders[arm], steps, device));
  std::vector<DecodeSpeed> rows;
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    const SequenceBytes bytes = decoders[arm].cache->sequence_bytes(0);
    DecodeSpeed row{
        arms[arm].name, batch, steps, spread_of(rounds[arm]), 0.0, 0.0, batch * (bytes.state + bytes.ring), 0};
    row.tokens_per_second = static_cast<double>(batch) / row.step_seconds.median;
    row.mixer_share = mixer_share(model, decoders[arm], steps);
    if (!device.is_cpu()) row.device_bytes = device_memory(device).peak;
    rows.push_back(std::move(row));
  }
  return rows;
}

// The prompt, a round to warm up, the timed ones, one with the clock.
std::int64_t positions_of(const std::vector<Arm>& arms, const ModelBenchOptions& options) {
  return options.context + 1 + steps_per_round(arms) * (options.rounds + 2);
}

}  // namespace

void check_model_bench(const std::vector<Arm>& arms, const ModelBenchOptions& options, std::int64_t max_positions) {
  if (options.batches.empty()) throw std::invalid_argument("bench model: no batch; expected at least one");
  for (const std::int64_t batch : options.batches)
    if (batch < 1) throw std::invalid_argument(fmt::format("bench model: batch {}; expected at least 1", batch));
  if (options.rounds < 1 || options.rounds > max_positions)
    throw std::invalid_argument(fmt::format("bench model: {} rounds; expected 1 to {}", options.rounds, max_positions));
  if (options.context < 0)
    throw std::invalid_argument(fmt::format("bench model: context {}; expected 0 or more", options.context));
  if (options.context >= max_positions ||
      options.rounds + 2 > (max_positions - options.context - 1) / steps_per_round(arms))
    throw std::invalid_argument(
        fmt::format("bench model: {} tokens of context and {} rounds of {} steps, one to warm up and one under the "
                    "clock; expected no more tokens a sequence than the model's {} positions",
                    options.context, options.rounds, steps_per_round(arms), max_positions));
}

std::vector<DecodeSpeed> bench_model(const Model& model, const std::vector<Arm>& arms, const ModelBenchOptions& options,
                                     const std::function<void(const DecodeSpeed&)>& progress) {
  const c10::NoGradGuard no_gradients;
  check_model_bench(arms, options, model.max_positions());
  const std::int64_t steps = steps_per_round(arms), capacity = positions_of(arms, options);
  std::vector<DecodeSpeed> rows;
  for (const std::int64_t batch : options.batches) {
    for (DecodeSpeed& row : bench_batch(model, arms, options, batch, steps, capacity)) {
      progress(row);
      rows.push_back(std::move(row));
    }
    const at::Device device = torch_device(model.options().device);
    if (!device.is_cpu()) release_cached_memory(device);
  }
  return rows;
}

}  // namespace replayeval
