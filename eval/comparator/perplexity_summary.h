// From per-token records to the numbers and intervals of a results file.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "datasets/windows.h"
#include "eval/comparator/perplexity.h"
#include "eval/comparator/token_records.h"
#include "eval/metrics/statistics.h"
#include "reports/results.h"

namespace replayeval {

// Fills arms, deltas, divergence and positions of `result`. `records` in text order.
void summarise_tokens(const RunContext& context, const WorkloadConfig& workload, const TokenRecords& records,
                      reports::Workload& result);

// An arm against a baseline on the same tokens: differences of perplexity and of the mean log-likelihood.
std::map<std::string, reports::Delta> perplexity_deltas(const metrics::TokenDivergence& baseline,
                                                        const metrics::TokenDivergence& arm,
                                                        const std::vector<std::int64_t>& document,
                                                        const metrics::IntervalOptions& options);

// Fills speed, kernel times and storage counts. An arm's seconds are those of its own kernels plus an equal share of
// the work that all arms share (dense layers, head); measuring divergence is nobody's. Also says in result.data, which
// names the mode, how tokens per second were counted and whether steps were replayed as CUDA graphs.
void summarise_costs(const RunContext& context, const Shard& totals, reports::Workload& result);

// tokens/WORKLOAD.index.npy [n, 4] int64: document, position in it, tokens decoded before in its window, token id;
// tokens/WORKLOAD.ARM.npy [n] float64 log-probabilities, tokens/WORKLOAD.ARM.kl.npy [n] float32;
// tokens/WORKLOAD.documents.json: source and id of each document.
void write_token_files(const RunContext& context, const std::string& workload, const TokenRecords& records,
                       const std::vector<datasets::DocumentInfo>& documents, const std::filesystem::path& folder);

}  // namespace replayeval
