// The perplexity workload: all arms predict the same text, token by token through the decode recurrence, and every
// prediction is compared with the baseline's (design: "The recurrences", "Statistics").
#pragma once

#include <memory>
#include <vector>

#include "datasets/tokenizer.h"
#include "datasets/windows.h"
#include "eval/comparator/run_config.h"
#include "eval/comparator/token_records.h"
#include "eval/model/model.h"
#include "reports/results.h"

namespace replayeval {

class BaselineKeeper;
class StoredBaseline;

// What a workload runs with; all of it outlives the workload.
struct RunContext {
  const RunConfig& config;
  const Model& model;
  std::shared_ptr<const datasets::Tokenizer> tokenizer;
  std::vector<Arm> arms;
  std::size_t baseline = 0;
  bool quiet = false;                       // no progress on stderr
  const BaselineKeeper* keeper = nullptr;   // of perplexity workloads, if a portable baseline is to be written
  const StoredBaseline* against = nullptr;  // that perplexity workloads are compared with, if any
};

// Where it leaves its work: shards while it runs, per-token arrays at the end.
struct WorkloadFolders {
  std::filesystem::path shards, tokens;
};

// How many windows are decoded at once: the workload's batch, or what "auto" stands for.
std::int64_t windows_at_once(const RunContext& context, const WorkloadConfig& workload);

// Opens and checks the workload's texts. `tokenizer`: null where no source has text. Throws datasets::DataError.
datasets::WindowReader open_windows(const WorkloadConfig& workload, std::int64_t vocab_size,
                                    const std::shared_ptr<const datasets::Tokenizer>& tokenizer);

// Goes on after the shards that an earlier run left; with the same build and machine the numbers are those of an
// undisturbed run; a damaged shard is named on stderr and computed again. Throws ConfigError before anything is decoded
// when no window reaches the last state_error position, Interrupted at a shard boundary when asked to stop,
// std::runtime_error naming document and place on logits that are not finite, and when there is nothing to score.
reports::Workload run_perplexity(const RunContext& context, const WorkloadConfig& workload,
                                 const WorkloadFolders& folders);

// Fills each arm's bytes of state and ring per sequence.
void describe_memory(const RunContext& context, reports::Workload& result);

}  // namespace replayeval
