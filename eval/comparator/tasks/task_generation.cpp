#include "eval/comparator/tasks/task_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "eval/comparator/generation/end_tokens.h"

namespace replayeval {
namespace {

// Without top_k: from all tokens, where the harness's `hf` model hands the choice to transformers' own default of 50.
Sampling sampling_of(const tasks::GenerationRequest& request, const std::string& place) {
  Sampling sampling;
  if (!request.sample) return sampling;
  sampling = {request.temperature, request.top_k.value_or(0), request.top_p.value_or(1.0)};
  if (const std::string fault = fault_of(sampling); !fault.empty()) throw datasets::DataError(place + ": " + fault);
  return sampling;
}

GenerationItem item_of(const tasks::GenerationRequest& request, const std::string& place) {
  GenerationItem item;
  item.prompt = request.prompt;
  item.max_tokens = request.max_tokens;
  std::copy_if(request.until.begin(), request.until.end(), std::back_inserter(item.stops),
               [](const std::string& stop) { return !stop.empty(); });
  item.sampling = sampling_of(request, place);
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
    GenerationItem item =
        item_of(task.generations[d], fmt::format("{}: line {}", workload.task->source.path, task.documents[d].line));
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
                                 [](const GenerationItem& item) { return !item.sampling.draws(); });
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
  all.facts["temperature"] = plan.items.front().sampling.temperature;
  all.facts["repeats"] = task.documents.front().repeats;
  all.costs = std::move(made.costs);
  return all;
}

}  // namespace replayeval
