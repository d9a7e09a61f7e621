#include "eval/comparator/generation/generation_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "eval/comparator/interrupt.h"
#include "eval/comparator/part_left.h"
#include "eval/comparator/progress.h"

namespace replayeval {
namespace {

constexpr std::int64_t cpu_slots = 8, cuda_slots = 128;
// Items of a part, over slots: the last ones of a part leave slots free, and a stopped run repeats a part at most.
constexpr std::int64_t part_rounds = 4;

std::int64_t slots_of(const RunContext& context, const GenerationPlan& plan) {
  const bool cuda = context.model.options().device == DeviceKind::cuda;
  const std::int64_t wanted = plan.slots.value_or(cuda ? cuda_slots : cpu_slots);
  return std::min(wanted, static_cast<std::int64_t>(plan.items.size()));
}

std::int64_t capacity_of(const std::vector<GenerationItem>& items) {
  std::int64_t longest = 1;
  for (const GenerationItem& item : items)
    longest = std::max(longest, static_cast<std::int64_t>(item.prompt.size()) + item.max_tokens);
  return longest;
}

GenerationShard generate_part(const RunContext& context, const GenerationPlan& plan,
                              const std::vector<GenerationItem>& items, std::int64_t slots, std::int64_t capacity,
                              Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  GenerationOptions options{slots, plan.seed, plan.prefill, plan.block, plan.end_tokens};
  Generator generator(context.model, context.arms, context.tokenizer, std::move(options), capacity);
  KernelClock clock(context.model.options().device);
  GenerationShard shard;
  shard.sequences.resize(items.size());
  Generator::Events events;
  events.done = [&](const GenerationItem& item, std::vector<GeneratedSequence> sequences) {
    std::size_t longest = 0;
    for (const GeneratedSequence& sequence : sequences)
      longest = std::max(longest, sequence.tokens.size() + (sequence.ending == Ending::end_token ? 1 : 0));
    progress.add(item.max_tokens - static_cast<std::int64_t>(longest));  // what it need not generate
    shard.sequences[static_cast<std::size_t>(&item - items.data())] = std::move(sequences);
  };
  events.stepped = [&](std::int64_t served) {
    stop_if_asked();
    progress.add(served);
  };
  generator.run(items, events, &clock);
  shard.generation = generator.costs();
  shard.costs.decoded_tokens = generator.costs().decoded_tokens;
  shard.costs.storage_counts = generator.storage_counts();
  shard.costs.kernel_seconds = clock.totals();
  shard.costs.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return shard;
}

void append(GenerationShard&& shard, Generated& all) {
  std::move(shard.sequences.begin(), shard.sequences.end(), std::back_inserter(all.sequences));
  add_costs(all.costs, shard.costs);
  all.generation.steps += shard.generation.steps;
  all.generation.decoded_tokens += shard.generation.decoded_tokens;
  all.generation.generated_tokens += shard.generation.generated_tokens;
  all.generation.prompt_tokens += shard.generation.prompt_tokens;
  all.generation.prompt_seconds += shard.generation.prompt_seconds;
}

std::int64_t most_tokens(const std::vector<GenerationItem>& items) {
  std::int64_t tokens = 0;
  for (const GenerationItem& item : items) tokens += item.max_tokens;
  return tokens;
}

}  // namespace

Generated generate(const RunContext& context, const GenerationPlan& plan, const std::filesystem::path& folder) {
  Progress progress(plan.title, most_tokens(plan.items), context.quiet);
  for (const std::string& warning : plan.warnings)
    progress.note(fmt::format("replayeval: warning: workload '{}': {}", plan.title, warning));
  Generated all;
  all.slots = slots_of(context, plan);
  const std::int64_t capacity = capacity_of(plan.items);
  const auto part_items = static_cast<std::size_t>(part_rounds * all.slots);
  std::int64_t index = 0;
  for (std::size_t begin = 0; begin < plan.items.size(); begin += part_items, ++index) {
    const std::size_t end = std::min(plan.items.size(), begin + part_items);
    const std::vector<GenerationItem> items(plan.items.begin() + static_cast<std::ptrdiff_t>(begin),
                                            plan.items.begin() + static_cast<std::ptrdiff_t>(end));
    std::optional<GenerationShard> shard = part_left(folder, index, progress, [&] {
      return load_generation_shard(folder, index, items.size(), context.arms.size());
    });
    if (shard) {
      progress.skip(most_tokens(items));
    } else {
      progress.start();
      stop_if_asked();
      shard = generate_part(context, plan, items, all.slots, capacity, progress);
      save_generation_shard(folder, index, *shard);
    }
    append(*std::move(shard), all);
  }
  progress.finish();
  return all;
}

nlohmann::json generation_facts(const Generated& generated, const GenerationPlan& plan) {
  return {{"sequences", plan.items.size()},
          {"seed", plan.seed},
          {"end_tokens", plan.end_tokens},
          {"mode", mode_name(Mode::stepwise)},
          {"slots", generated.slots},
          {"steps", generated.generation.steps},
          {"tokens_decoded", generated.generation.decoded_tokens},
          {"tokens_generated", generated.generation.generated_tokens},
          {"prompt_tokens", generated.generation.prompt_tokens},
          {"prompt_seconds", generated.generation.prompt_seconds},
          {"tokens_per_second_method",
           "sequences in slots, summed over decode steps, over the time of the arm's own kernels and an equal share of "
           "what all arms share; prompts apart. An arm's sequence counts until all arms have ended theirs, so that no "
           "arm gains by ending early or late"}};
}

}  // namespace replayeval
