// The result of a run, as results.json holds it (reports/schema/results.schema.json describes the file).
// An interval that was not computed is absent, never zero; a number that is not finite is an error, never a value.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace replayeval::reports {

inline constexpr int schema_version = 1;

struct Metric {
  double value = 0.0;
  std::optional<double> low, high;  // interval of `confidence` of the workload, if computed
  std::optional<std::int64_t> n;    // how many tokens, documents or items stand behind it
};

struct Delta {  // arm minus baseline, paired
  double value = 0.0;
  std::optional<double> low, high, p_value, confidence;
  std::string method;                      // e.g. "paired bootstrap over blocks", "paired t over blocks": for people
  std::string interval_kind = {};          // bootstrap | t | score | exact | pooled; empty: no interval
  std::optional<std::int64_t> units = {};  // documents, blocks or items behind the interval
};

struct ArmResult {
  std::map<std::string, Metric> metrics;  // e.g. perplexity, mean_log_likelihood
  double seconds = 0.0;                   // wall time attributed to this arm's mixers, rings and states
  double tokens_per_second = 0.0;
  std::optional<std::int64_t> state_bytes, ring_bytes;  // stored per sequence, over all layers
};

// One row of a perplexity delta by position: tokens whose position in their window lies in [begin, end).
struct PositionBucket {
  std::int64_t begin = 0, end = 0, n = 0;
  std::map<std::string, Metric> perplexity;  // by arm
  std::map<std::string, Delta> delta;        // by arm: of mean log-likelihood
};

// State error of one arm at one depth, layer and position, over all heads and sampled sequences.
struct StateError {
  std::string arm;
  std::string depth;  // local | propagated | gold
  std::int64_t layer = 0, position = 0;
  double relative_frobenius = 0.0, max_abs = 0.0, cosine = 0.0;
  double output_relative_error = 0.0;           // of the mixer output y at that position
  std::vector<double> head_relative_frobenius;  // [num_heads]
};

struct StorageCount {  // of one arm and layer, summed over the workload
  std::string arm;
  std::int64_t layer = 0;
  std::int64_t saturated = 0, subnormal = 0, non_finite = 0;
};

struct KernelTime {    // wall time of one kind of work
  std::string arm;     // "" for work shared by all arms
  std::string kernel;  // e.g. mamba2, conv, gated_norm, attention, dense, head, metrics
  std::int64_t calls = 0;
  double seconds = 0.0;
};

// Synthetic recall of one task at one length and depth.
struct RecallCell {
  std::string task, kind;
  std::int64_t length = 0;      // tokens of a document
  std::optional<double> depth;  // 0 … 1; absent: anywhere
  std::int64_t documents = 0;
  double chance = 0.0;                     // what a guess is worth
  bool signal = false;                     // the baseline is better than chance
  std::map<std::string, Metric> accuracy;  // by arm: share of answers that are right
  std::map<std::string, Delta> delta;      // by arm, the baseline apart
};

// How long an arm's generated sequences stay the baseline's.
struct AgreementStep {
  std::string arm;
  std::int64_t step = 0;  // tokens
  double same = 0.0;      // share of sequences whose first `step` tokens are the baseline's; shorter ones: all of them
};

// One arm's outputs under one kind of event of a churn workload, against those of an undisturbed run.
struct ChurnCheck {
  std::string level;  // mixer: outputs and states, given equal inputs; prefix: all that a saved prefix brings
                      // back; model: log-probabilities
  std::string event;  // admission | one_token_chunk | recomputation | restore | padded_rows | ...
  std::string arm;
  std::int64_t batch = 0;      // sequences at once
  std::int64_t compared = 0;   // tokens, over all mixers; tensors of prefixes
  std::int64_t differing = 0;  // of them not equal to the bit
  double max_deviation = 0.0;
  // Absent: every bit must be equal. Otherwise what `bound_from`, an exact arm, leads one to expect: of its own
  // deviations across batch sizes, without any event, `measured` is the largest.
  std::optional<double> bound, measured;
  std::string bound_from;

  bool holds() const { return bound ? max_deviation <= *bound : differing == 0; }
};

// An arm of this run against one that an earlier run kept (a portable baseline), on the same tokens.
struct StoredComparison {
  std::string arm, stored_arm;
  std::map<std::string, Delta> deltas;  // as Workload::deltas of an arm
  std::map<std::string, Metric>
      divergence;  // as Workload::divergence of an arm; empty where only log-probabilities are kept
};

struct Workload {
  std::string name;
  std::string kind;     // perplexity | recall | task | churn | state_error | generation | speed
  nlohmann::json data;  // sources with hashes, context, stride, prompt, mode, tokens scored, documents
  std::map<std::string, ArmResult> arms;
  std::map<std::string, std::map<std::string, Delta>> deltas;  // arm -> metric -> delta
  std::map<std::string, std::map<std::string, Metric>>
      divergence;  // arm -> kl_mean, kl_max, kl_p99, same_top1, tie_share, dp_rms ...
  std::vector<PositionBucket> positions;
  std::vector<StateError> state_errors;
  std::vector<RecallCell> recall;        // of recall workloads
  std::vector<AgreementStep> agreement;  // of generation workloads
  std::vector<ChurnCheck> churn;         // of churn workloads
  std::vector<StoredComparison>
      against;  // where the run was compared with a stored baseline; data["against"] says which
  std::vector<StorageCount> storage_counts;
  std::vector<KernelTime> kernel_times;
  double seconds = 0.0;
};

// Two one-sided tests of a difference being inside (-margin, margin).
struct Equivalence {
  double margin = 0.0, p_value = 1.0;
  bool equivalent = false;
  double low = 0.0, high = 0.0, confidence = 0.0;  // the interval that the tests speak of: 2 · confidence - 1
};

// One accuracy metric of several tasks taken together: an arm against the baseline.
struct TaskFamily {
  struct Member {
    std::string workload;
    std::int64_t n = 0;  // documents
    Delta delta;
    double adjusted_p_value = 1.0;  // Holm's, for having asked all these tasks
  };
  std::string metric, arm;
  std::vector<Member> tasks;
  std::int64_t n = 0, gained = 0, lost = 0;  // documents in all; right for the arm alone; for the baseline alone
  Delta by_question, by_task;                // every document counts the same; every task does
  std::optional<double> detectable;          // the smallest difference that as many documents show (80 % power)
  std::optional<Equivalence> equivalence;    // by question, where all tasks have one margin
  std::optional<std::int64_t> documents_to_detect_margin, documents_to_show_equivalence;  // 80 % power
};

struct Results {
  nlohmann::json tool;               // {name, version, git, build}
  nlohmann::json environment;        // {cpu, cores, gpu?, os, torch, date, ...}
  nlohmann::json config;             // the config as run, defaults filled in
  nlohmann::json checkpoint;         // {path, sha256, model_type, parameters, ...}
  nlohmann::json numerics;           // every rounding point and choice by name
  std::vector<nlohmann::json> arms;  // {name, executor, state_storage, ring_storage, buffer_len, route, flush, ...}
  std::string baseline;
  std::vector<Workload> workloads;
  std::vector<TaskFamily> task_families;  // where two tasks or more have an accuracy metric in common
};

}  // namespace replayeval::reports
