#include "eval/comparator/scoring_bench.h"

#include <fmt/format.h>

#include <random>
#include <stdexcept>

#include "eval/comparator/perplexity_pass.h"

namespace replayeval {
namespace {

std::vector<datasets::Window> random_windows(const ScoringBenchOptions& options, std::int64_t sequences,
                                             std::int64_t vocab_size) {
  std::mt19937_64 engine(options.seed);
  std::uniform_int_distribution<std::int32_t> token(0, static_cast<std::int32_t>(vocab_size - 1));
  std::vector<datasets::Window> windows(static_cast<std::size_t>(sequences));
  for (datasets::Window& window : windows)
    for (std::int64_t i = 0; i <= options.context; ++i) window.tokens.push_back(token(engine));
  return windows;
}

// Products are what a model's arithmetic consists of; everything else is what scoring adds to them.
std::string part_of(const KernelSeconds& entry) {
  if (!entry.arm.empty()) return "mixers";
  const bool product = entry.kernel == "dense" || entry.kernel == "experts" || entry.kernel == "head";
  return product ? "products" : entry.kernel;
}

}  // namespace

void check_scoring_bench(const ScoringBenchOptions& options, std::int64_t max_positions) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("bench model: " + what); };
  if (options.context < 1 || options.context > max_positions)
    refuse(fmt::format("{} tokens to score; expected 1 to the model's {} positions", options.context, max_positions));
  if (options.sequences < 0) refuse(fmt::format("{} sequences; expected 0 (auto) or more", options.sequences));
  if (options.block < 1) refuse(fmt::format("block {}; expected at least 1", options.block));
}

ScoringSpeed bench_scoring(const RunContext& context, const ScoringBenchOptions& options) {
  check_scoring_bench(options, context.model.max_positions());
  WorkloadConfig workload;
  workload.name = "scoring";
  workload.context = workload.stride = options.context;
  workload.block = options.block;
  ScoringSpeed speed;
  speed.context = options.context;
  speed.block = options.block;
  speed.sequences = options.sequences == 0 ? windows_at_once(context, workload) : options.sequences;
  const std::vector<datasets::Window> windows = random_windows(options, speed.sequences, context.model.vocab_size());
  const std::vector<datasets::DocumentInfo> documents = {{"random ids", "0", options.context + 1, options.context, 0}};
  PerplexityPass pass(context, workload, documents);
  pass.run(windows);  // warms up
  const Shard shard = pass.run(windows);
  speed.seconds = shard.seconds;
  speed.tokens_per_second = static_cast<double>(shard.decoded_tokens) / shard.seconds;
  double known = 0.0;
  for (const KernelSeconds& entry : shard.kernel_seconds) {
    speed.share[part_of(entry)] += entry.seconds / shard.seconds;
    if (!entry.arm.empty()) speed.mixers[entry.arm][entry.kernel] = entry.seconds / shard.seconds;
    known += entry.seconds / shard.seconds;
  }
  speed.share["rest"] = 1.0 - known;
  return speed;
}

}  // namespace replayeval
