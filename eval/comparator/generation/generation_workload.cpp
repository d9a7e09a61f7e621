#include "eval/comparator/generation/generation_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "datasets/tasks/plain_task.h"
#include "datasets/tasks/sample_writer.h"
#include "eval/comparator/generation/end_tokens.h"
#include "eval/comparator/generation/generation_parts.h"
#include "eval/comparator/generation/generation_summary.h"
#include "eval/comparator/generation/stop_strings.h"
#include "eval/comparator/perplexity_summary.h"
#include "eval/comparator/token_files.h"
#include "eval/npy.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path folder_of(const fs::path& checkpoint) {
  return fs::is_directory(checkpoint) ? checkpoint : checkpoint.parent_path();
}

std::set<std::int32_t> ends_of(const RunContext& context, const GenerationConfig& config) {
  if (config.ignore_eos) return {};
  if (!config.end_tokens.empty()) return {config.end_tokens.begin(), config.end_tokens.end()};
  return end_tokens_of(folder_of(context.config.checkpoint_folder), context.tokenizer.get(),
                       context.model.vocab_size());
}

GenerationPlan plan_of(const RunContext& context, const WorkloadConfig& workload, const Prompts& prompts) {
  const GenerationConfig& config = *workload.generation;
  GenerationPlan plan;
  plan.title = workload.name;
  plan.slots = workload.batch;
  plan.seed = config.seed;
  plan.prefill = workload.prompt == Prompt::prefill;
  plan.block = workload.block;
  plan.end_tokens = ends_of(context, config);
  for (std::size_t item = 0; item < prompts.items.size(); ++item)
    for (std::int64_t repeat = 0; repeat < config.repeats; ++repeat)
      plan.items.push_back({static_cast<std::int64_t>(item),
                            repeat,
                            prompts.items[item].tokens,
                            config.max_tokens,
                            config.stop,
                            {config.temperature, config.top_k, config.top_p}});
  return plan;
}

GeneratedTexts texts_of(const RunContext& context, const GenerationConfig& config,
                        std::vector<std::vector<GeneratedSequence>> sequences) {
  GeneratedTexts generated;
  generated.max_tokens = config.max_tokens;
  generated.greedy = config.temperature == 0.0;
  const StopStrings stops(context.tokenizer, config.stop);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    generated.item.push_back(static_cast<std::int64_t>(i) / config.repeats);
    auto& texts = generated.texts.emplace_back();
    for (const GeneratedSequence& sequence : sequences[i])
      texts.push_back(stops.cut(context.tokenizer->decode(sequence.tokens, datasets::SpecialTokens::skip)));
  }
  generated.sequences = std::move(sequences);
  return generated;
}

// A prompt as a document of a generate_until task without a right answer.
tasks::TaskDocument document_of(const PromptItem& prompt, std::int64_t id, const GenerationConfig& config) {
  tasks::TaskDocument document;
  document.id = id;
  document.type = tasks::RequestType::generate_until;
  document.requests.push_back({prompt.text, ""});
  document.repeats = config.repeats;
  document.doc = prompt.doc;
  tasks::OrderedJson arguments = {{"until", config.stop}, {"max_gen_toks", config.max_tokens}};
  arguments["do_sample"] = config.temperature > 0.0;
  arguments["temperature"] = config.temperature;
  if (config.top_k > 0) arguments["top_k"] = config.top_k;
  if (config.top_p < 1.0) arguments["top_p"] = config.top_p;
  document.arguments["gen_args_0"] = {{"arg_0", prompt.text}, {"arg_1", std::move(arguments)}};
  tasks::add_hashes(document);
  return document;
}

void write_samples(const GenerationConfig& config, const Prompts& prompts, const GeneratedTexts& generated,
                   std::size_t arm, const fs::path& file) {
  tasks::SampleWriter writer(file);
  for (std::size_t item = 0; item < prompts.items.size(); ++item) {
    tasks::DocumentResponse response;
    for (std::int64_t repeat = 0; repeat < config.repeats; ++repeat)
      response.texts.push_back(
          generated.texts[item * static_cast<std::size_t>(config.repeats) + static_cast<std::size_t>(repeat)][arm]);
    tasks::FilterScores scores;
    scores.filter = "none";
    scores.texts = {{response.texts.front()}, true};
    writer.add(document_of(prompts.items[item], static_cast<std::int64_t>(item), config), response, {scores});
  }
  writer.finish();
}

void write_tokens(const GeneratedTexts& generated, std::size_t arm, const fs::path& file) {
  std::size_t longest = 0;
  for (const auto& sequences : generated.sequences) longest = std::max(longest, sequences[arm].tokens.size());
  std::vector<std::int64_t> ids;
  ids.reserve(longest * generated.sequences.size());
  for (const auto& sequences : generated.sequences) {
    const std::vector<std::int32_t>& tokens = sequences[arm].tokens;
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    ids.insert(ids.end(), longest - tokens.size(), -1);
  }
  write_npy(file, {static_cast<std::int64_t>(generated.sequences.size()), static_cast<std::int64_t>(longest)},
            std::span<const std::int64_t>(ids));
}

json describe(const WorkloadConfig& workload, const Prompts& prompts, const GenerationPlan& plan,
              const Generated& generated) {
  const GenerationConfig& config = *workload.generation;
  json data = generation_facts(generated, plan);
  data["sources"] = {prompts.description};
  data["prompts"] = prompts.items.size();
  data["repeats"] = config.repeats;
  data["max_tokens"] = config.max_tokens;
  data["temperature"] = config.temperature;
  if (config.top_k > 0) data["top_k"] = config.top_k;
  if (config.top_p < 1.0) data["top_p"] = config.top_p;
  data["stop"] = config.stop;
  data["prompt"] = prompt_name(workload.prompt);
  return data;
}

}  // namespace

Prompts open_prompts(const RunConfig& config, const WorkloadConfig& workload,
                     const std::shared_ptr<const datasets::Tokenizer>& tokenizer, std::int64_t vocab_size,
                     std::int64_t max_positions) {
  return read_prompts(*workload.generation, tokenizer,
                      {folder_of(config.checkpoint_folder), vocab_size, max_positions});
}

reports::Workload run_generation(const RunContext& context, const WorkloadConfig& workload,
                                 const GenerationFolders& folders) {
  const GenerationConfig& config = *workload.generation;
  const Prompts prompts = open_prompts(context.config, workload, context.tokenizer, context.model.vocab_size(),
                                       context.model.max_positions());
  const GenerationPlan plan = plan_of(context, workload, prompts);
  Generated made = generate(context, plan, folders.shards);
  reports::Workload result;
  result.name = workload.name;
  result.kind = workload.kind;
  result.data = describe(workload, prompts, plan, made);
  if (context.config.random_weights) result.data["weights"] = "random";
  const GeneratedTexts generated = texts_of(context, config, std::move(made.sequences));
  fs::create_directories(folders.samples);
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    const std::string& name = context.arms[arm].name;
    write_samples(config, prompts, generated, arm, folders.samples / fmt::format("{}.{}.jsonl", workload.name, name));
    write_tokens(generated, arm, folders.tokens / generated_file(workload.name, name));
  }
  summarise_generation(context, generated, result);
  summarise_costs(context, made.costs, result);
  describe_memory(context, result);
  return result;
}

}  // namespace replayeval
