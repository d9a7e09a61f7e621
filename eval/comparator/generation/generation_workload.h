// The generation workload: the same prompts continued by all arms, and how their texts come apart, from the baseline's
// and in themselves.
#pragma once

#include <filesystem>

#include "eval/comparator/generation/prompts.h"
#include "eval/comparator/perplexity.h"
#include "reports/results.h"

namespace replayeval {

// Where it leaves its work: shards while it runs; a file of samples and an array of token ids an arm at the end.
struct GenerationFolders {
  std::filesystem::path shards, samples, tokens;
};

// Goes on after the parts that an earlier run left. samples/WORKLOAD.ARM.jsonl has lm-evaluation-harness's form,
// tokens/WORKLOAD.ARM.generated.npy the generated ids, [sequences, longest] int64, -1 behind a sequence's end; both in
// the order of items and their repeats. Throws Interrupted when asked to stop, datasets::DataError naming file and
// line, and std::runtime_error on logits that are not finite.
reports::Workload run_generation(const RunContext& context, const WorkloadConfig& workload,
                                 const GenerationFolders& folders);

// What decides the workload's prompts, checked. Throws datasets::DataError.
Prompts open_prompts(const RunConfig& config, const WorkloadConfig& workload,
                     const std::shared_ptr<const datasets::Tokenizer>& tokenizer, std::int64_t vocab_size,
                     std::int64_t max_positions);

}  // namespace replayeval
