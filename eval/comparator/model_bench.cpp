#include "eval/comparator/model_bench.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "eval/executors/device.h"
#include "eval/executors/device_memory.h"
#include "eval/model/step_weights.h"

namespace replayeval {
namespace {

constexpr std::int64_t fewest_steps = 16;
constexpr std::int64_t prompt_block = 256;
constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

// Arms that share a step: one, or the stacked ones.
using Together = std::vector<Arm>;

// What is the same for all batches.
struct Bench {
  const Model& model;
  const Architecture& architecture;
  const ModelBenchOptions& options;
  std::int64_t steps, capacity;
  at::Device device;
};

// Sequences of some arms, ready to decode the next token.
struct Decoder {
  std::unique_ptr<DecodeCache> cache;
  at::Tensor next;  // [batch, 1], or [arms, batch, 1], int64 on the model's device
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
  const at::Tensor chosen = model.logits(hidden.select(2, 0)).argmax(-1).unsqueeze(-1);
  decoder.next = chosen.size(0) == 1 ? chosen.squeeze(0) : chosen;
}

void run_steps(const Model& model, Decoder& decoder, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) step(model, decoder);
}

Decoder make_decoder(const Bench& bench, const Together& arms, const at::Tensor& prompt) {
  Decoder decoder{bench.model.make_cache(arms, prompt.size(0), bench.capacity),
                  prompt.narrow(1, prompt.size(1) - 1, 1)};
  for (std::int64_t begin = 0; begin < prompt.size(1) - 1; begin += prompt_block) {
    const std::int64_t tokens = std::min(prompt_block, prompt.size(1) - 1 - begin);
    bench.model.forward(prompt.narrow(1, begin, tokens), *decoder.cache, Mode::teacher_forced);
  }
  return decoder;
}

double timed_round(const Bench& bench, Decoder& decoder) {
  synchronise(bench.device);
  const auto start = std::chrono::steady_clock::now();
  run_steps(bench.model, decoder, bench.steps);
  synchronise(bench.device);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(bench.steps);
}

std::vector<KernelSeconds> clocked_round(const Bench& bench, Decoder& decoder, KernelClock::Mixers in_graphs) {
  KernelClock clock(bench.model.options().device, KernelClock::Timing::live, in_graphs);
  for (std::int64_t i = 0; i < bench.steps; ++i) step(bench.model, decoder, &clock);
  return clock.totals();
}

// The time that is spent in what arms differ in. Without graphs the clock tells a mixer's parts apart at once.
void time_mixers(const Bench& bench, Decoder& decoder, DecodeSpeed& row) {
  const auto steps = static_cast<double>(bench.steps);
  const std::vector<KernelSeconds> entries = clocked_round(bench, decoder, KernelClock::Mixers::whole);
  double mixers = 0.0, all = 0.0;
  for (const KernelSeconds& entry : entries) {
    all += entry.seconds;
    if (entry.arm.empty()) continue;
    mixers += entry.seconds;
    row.mixer_seconds[entry.arm] += entry.seconds / steps;
  }
  row.mixer_share = all == 0.0 ? 0.0 : mixers / all;
  const bool graphs = row.graph_obstacle.empty();
  for (const KernelSeconds& entry : graphs ? clocked_round(bench, decoder, KernelClock::Mixers::parts) : entries)
    if (!entry.arm.empty()) row.mixer_parts[entry.arm][entry.kernel] += entry.seconds / steps;
}

Spread spread_of(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  const std::size_t n = rounds.size();
  return {(rounds[(n - 1) / 2] + rounds[n / 2]) / 2.0, rounds.front(), rounds.back()};
}

std::vector<std::string> names_of(const Together& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name);
  return names;
}

DecodeSpeed empty_row(const Bench& bench, const Together& arms, std::int64_t batch) {
  DecodeSpeed row;
  row.arms = names_of(arms);
  row.arm = fmt::format("{}", fmt::join(row.arms, " + "));
  row.batch = batch;
  row.steps_per_round = bench.steps;
  return row;
}

// Bytes that a step moves, in the middle of the timed rounds.
double bytes_of_step(const Bench& bench, const Together& arms, std::int64_t batch) {
  const Architecture& architecture = bench.architecture;
  const Dtype compute = bench.model.options().compute_dtype;
  const StepWeights weights = step_weights(bench.model.weight_totals(), bench.model.vocab_size());
  const auto rows = static_cast<std::int64_t>(arms.size()) * batch;
  const std::int64_t context = bench.options.context + 1 + bench.steps + bench.steps * bench.options.rounds / 2;
  double bytes = weight_bytes_per_step(architecture, weights, rows) +
                 static_cast<double>(rows * kv_bytes_per_token(architecture, compute) * context);
  for (const Arm& arm : arms) {
    const Dtype state = arm.state_storage.dtype;
    bytes +=
        static_cast<double>(batch) * (arm.executor == Executor::exact
                                          ? exact_bytes_per_token(architecture, state, compute)
                                          : replay_bytes_per_token(architecture, arm.ring_form, arm.replay.buffer_len,
                                                                   state, arm.replay.ring_dtype, compute));
  }
  return bytes;
}

// Bytes that decoding needs beside the weights, from above: caches, pools of keys and values while they grow, logits.
double memory_of(const Bench& bench, const Together& arms, std::int64_t batch) {
  const Architecture& architecture = bench.architecture;
  const Dtype compute = bench.model.options().compute_dtype;
  double a_sequence = 0.0;
  for (const Arm& arm : arms) {
    a_sequence += static_cast<double>(state_bytes(architecture, arm.state_storage.dtype) +
                                      conv_state_bytes(architecture, compute) +
                                      2 * (bench.capacity + 128) * kv_bytes_per_token(architecture, compute)) +
                  3.0 * 4.0 * static_cast<double>(bench.model.vocab_size());
    if (arm.executor == Executor::replay)
      a_sequence +=
          static_cast<double>(ring_bytes(architecture, arm.ring_form, arm.replay.buffer_len, arm.replay.ring_dtype));
  }
  return static_cast<double>(batch) * a_sequence + 0.25 * gibibyte;
}

// All of a group at one batch size; they take turns, so that a clock that drifts drifts for all.
std::vector<DecodeSpeed> bench_group(const Bench& bench, const std::vector<Together>& group, const at::Tensor& prompt) {
  if (!bench.device.is_cpu()) reset_peak_memory(bench.device);
  std::vector<Decoder> decoders;
  for (const Together& arms : group) {
    decoders.push_back(make_decoder(bench, arms, prompt));
    run_steps(bench.model, decoders.back(), bench.steps);  // warms up
  }
  std::vector<std::vector<double>> rounds(group.size());
  for (std::int64_t round = 0; round < bench.options.rounds; ++round)
    for (std::size_t i = 0; i < group.size(); ++i) rounds[i].push_back(timed_round(bench, decoders[i]));
  std::vector<DecodeSpeed> rows;
  for (std::size_t i = 0; i < group.size(); ++i) {
    DecodeSpeed row = empty_row(bench, group[i], prompt.size(0));
    row.step_seconds = spread_of(rounds[i]);
    row.tokens_per_second =
        static_cast<double>(row.batch) * static_cast<double>(row.arms.size()) / row.step_seconds.median;
    if (bench.options.read_bandwidth > 0.0)
      row.predicted_seconds = bytes_of_step(bench, group[i], row.batch) / bench.options.read_bandwidth;
    for (std::size_t arm = 0; arm < row.arms.size(); ++arm) {
      const SequenceBytes bytes = decoders[i].cache->sequence_bytes(arm);
      row.cache_bytes += row.batch * (bytes.state + bytes.ring);
    }
    row.turns = static_cast<std::int64_t>(group.size());
    row.graph_obstacle = decoders[i].cache->graph_obstacle();
    time_mixers(bench, decoders[i], row);
    if (!bench.device.is_cpu()) row.device_bytes = device_memory(bench.device).peak;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string memory_note(double needed, double free) {
  return fmt::format("needs about {:.1f} GiB beside the weights, {:.1f} GiB are free", needed / gibibyte,
                     free / gibibyte);
}

// In the given order, as many at once as memory holds.
std::vector<DecodeSpeed> bench_batch(const Bench& bench, const std::vector<Together>& all, std::int64_t batch,
                                     const std::function<void(const DecodeSpeed&)>& progress) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(bench.options.seed);
  const at::Tensor prompt = at::randint(0, bench.model.vocab_size(), {batch, bench.options.context + 1}, generator,
                                        at::TensorOptions().dtype(at::kLong))
                                .to(bench.device);
  std::vector<DecodeSpeed> rows;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin + 1;
    if (!bench.device.is_cpu()) release_cached_memory(bench.device);
    const double free = bench.device.is_cpu() ? 0.0 : static_cast<double>(device_memory(bench.device).free);
    double needed = memory_of(bench, all[begin], batch);
    const bool counts = !bench.device.is_cpu();
    for (; end < all.size(); ++end) {
      const double more = memory_of(bench, all[end], batch);
      if (counts && needed + more > free) break;
      needed += more;
    }
    std::vector<DecodeSpeed> group;
    if (counts && needed > free) {
      group.push_back(empty_row(bench, all[begin], batch));
      group.back().not_run = memory_note(needed, free);
    } else {
      group = bench_group(
          bench, {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)},
          prompt);
    }
    for (DecodeSpeed& row : group) {
      progress(row);
      rows.push_back(std::move(row));
    }
    begin = end;
  }
  return rows;
}

// The prompt, a round to warm up, the timed ones, at most two with the clock.
std::int64_t positions_of(const std::vector<Arm>& arms, const ModelBenchOptions& options) {
  return options.context + 1 + steps_per_round(arms) * (options.rounds + 3);
}

const Arm* find_arm(const std::vector<Arm>& arms, const std::string& name) {
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const Arm& arm) { return arm.name == name; });
  return found == arms.end() ? nullptr : &*found;
}

// Each arm alone; the stacked ones directly behind the later of the two, so that they take turns where memory allows.
std::vector<Together> decoded_together(const std::vector<Arm>& arms, const std::vector<std::string>& stacked) {
  std::vector<Together> all;
  std::size_t missing = stacked.size();
  for (const Arm& arm : arms) {
    all.push_back({arm});
    const bool is_stacked = std::find(stacked.begin(), stacked.end(), arm.name) != stacked.end();
    if (is_stacked && --missing == 0) all.push_back({*find_arm(arms, stacked[0]), *find_arm(arms, stacked[1])});
  }
  return all;
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
      options.rounds + 3 > (max_positions - options.context - 1) / steps_per_round(arms))
    throw std::invalid_argument(
        fmt::format("bench model: {} tokens of context and {} rounds of {} steps, one to warm up and two under the "
                    "clock; expected no more tokens a sequence than the model's {} positions",
                    options.context, options.rounds, steps_per_round(arms), max_positions));
  const std::vector<std::string>& stacked = options.stacked;
  if (!stacked.empty() && (stacked.size() != 2 || stacked[0] == stacked[1]))
    throw std::invalid_argument("bench model: stacked arms; expected two different ones");
  for (const std::string& name : stacked)
    if (find_arm(arms, name) == nullptr)
      throw std::invalid_argument(fmt::format("bench model: stacked arm '{}'; expected one of the config's arms ({})",
                                              name, fmt::join(names_of(arms), ", ")));
}

std::vector<DecodeSpeed> bench_model(const Model& model, const Architecture& architecture, const std::vector<Arm>& arms,
                                     const ModelBenchOptions& options,
                                     const std::function<void(const DecodeSpeed&)>& progress) {
  const c10::NoGradGuard no_gradients;
  check_model_bench(arms, options, model.max_positions());
  const Bench bench{model,
                    architecture,
                    options,
                    steps_per_round(arms),
                    positions_of(arms, options),
                    torch_device(model.options().device)};
  const std::vector<Together> all = decoded_together(arms, options.stacked);
  std::vector<DecodeSpeed> rows;
  for (const std::int64_t batch : options.batches)
    for (DecodeSpeed& row : bench_batch(bench, all, batch, progress)) rows.push_back(std::move(row));
  if (!bench.device.is_cpu()) release_cached_memory(bench.device);
  return rows;
}

std::vector<StackedSpeed> stacked_speeds(const std::vector<DecodeSpeed>& rows) {
  std::vector<StackedSpeed> all;
  const auto alone = [&](const DecodeSpeed& of, std::size_t arm) {
    return std::find_if(rows.begin(), rows.end(), [&](const DecodeSpeed& row) {
      return row.batch == of.batch && row.arm == of.arms[arm] && row.not_run.empty();
    });
  };
  for (const DecodeSpeed& row : rows) {
    if (row.arms.size() != 2 || !row.not_run.empty()) continue;
    auto slower = alone(row, 0), other = alone(row, 1);
    if (slower == rows.end() || other == rows.end()) continue;
    if (slower->step_seconds.median < other->step_seconds.median) std::swap(slower, other);
    const auto mixers = other->mixer_seconds.find(other->arm);
    all.push_back({row.batch, slower->arm, row.step_seconds.median, slower->step_seconds.median,
                   mixers == other->mixer_seconds.end() ? 0.0 : mixers->second});
  }
  return all;
}

}  // namespace replayeval
