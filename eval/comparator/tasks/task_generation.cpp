#include "eval/comparator/tasks/task_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "eval/comparator/generation/end_tokens.h"

namespace replayeval {
namespace {

void refuse_unknown_sampling(const tasks::GenerationRequest& request, const std::string& place) {
  const auto refuse = [&](const char* key) {
    throw datasets::DataError(
        fmt::format("{}: {}: found one, expected none: draws follow the temperature alone", place, key));
  };
  if (!request.sample) return;
  if (request.top_p && *request.top_p < 1.0) refuse("top_p");
  if (request.top_k && *request.top_k > 0) refuse("top_k");
}

GenerationItem item_of(const tasks::GenerationRequest& request) {
  GenerationItem item;
  item.prompt = request.prompt;
  item.max_tokens = request.max_tokens;
  std::copy_if(request.until.begin(), request.until.end(), std::back_inserter(item.stops),
               [](const std::string& stop) { return !stop.empty(); });
  item.temperature = request.temperature;
  return item;
}

GenerationPlan plan_of(const RunContext& context, const WorkloadConfig& workload, const TaskRequests& task) {
  GenerationPlan plan;
  plan.title = workload.name;
  plan.slots = workload.batch;
  plan.seed = workload.task->seed;
  plan.prefill = workload.prompt == Prompt::prefill;
  plan.block = workload.block;
  plan.warnings = task.warnings;
  const std::filesystem::path& checkpoint = context.config.checkpoint_folder;
  plan.end_tokens = end_tokens_of(std::filesystem::is_directory(checkpoint) ? checkpoint : checkpoint.parent_path(),
                                  context.tokenizer.get(), context.model.vocab_size());
  for (std::size_t d = 0; d < task.documents.size(); ++d) {
    refuse_unknown_sampling(task.generations[d],
                            fmt::format("{}: line {}", workload.task->source.path, task.documents[d].line));
    GenerationItem item = item_of(task.generations[d]);
    item.item = static_cast<std::int64_t>(d);
    for (item.repeat = 0; item.repeat < task.documents[d].repeats; ++item.repeat) plan.items.push_back(item);
  }
  return plan;
}

// Cuts the texts and hands them to their documents.
void add_texts(const RunContext& context, const TaskRequests& task, const GenerationPlan& plan, TaskTexts& all) {
  GeneratedTexts& generated = all.generated;
  all.responses.assign(task.documents.size(), std::vector<tasks::DocumentResponse>(context.arms.size()));
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const auto document = static_cast<std::size_t>(plan.items[i].item);
    generated.item.push_back(plan.items[i].item);
    generated.max_tokens = std::max(generated.max_tokens, plan.items[i].max_tokens);
    auto& texts = generated.texts.emplace_back();
    for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
      const std::string whole =
          context.tokenizer->decode(generated.sequences[i][arm].tokens, datasets::SpecialTokens::skip);
      texts.push_back(tasks::cut_at_stops(whole, task.generations[document].until));
      all.responses[document][arm].texts.push_back(texts.back());
    }
  }
  generated.greedy = std::all_of(plan.items.begin(), plan.items.end(),
                                 [](const GenerationItem& item) { return item.temperature == 0.0; });
}

}  // namespace

TaskTexts generate_task(const RunContext& context, const WorkloadConfig& workload, const TaskRequests& task,
                        const std::filesystem::path& shards) {
  const GenerationPlan plan = plan_of(context, workload, task);
  Generated made = generate(context, plan, shards);
  TaskTexts all;
  all.generated.sequences = std::move(made.sequences);
  add_texts(context, task, plan, all);
  all.facts = generation_facts(made, plan);
  all.facts["prompts"] = task.documents.size();
  all.facts["max_tokens"] = all.generated.max_tokens;
  all.facts["temperature"] = plan.items.front().temperature;
  all.facts["repeats"] = task.documents.front().repeats;
  all.costs = std::move(made.costs);
  return all;
}

}  // namespace replayeval
