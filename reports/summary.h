// What the table and the reports show first of each arm, picked out of a workload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/results.h"

namespace replayeval::reports {

struct ArmSummary {
  std::string name;
  std::string description;  // e.g. "replay, L = 16, float32 state, bfloat16 ring"
  bool is_baseline = false;
  std::optional<double> perplexity;
  std::optional<Delta> perplexity_ratio;  // PPL / baseline PPL - 1
  std::optional<double> kl_mean, kl_p999, kl_max, same_top1;
  std::optional<double> perplexity_error, same_top1_error;  // half the widths of their intervals
  // Largest relative Frobenius error over layers and sampled positions, by depth.
  std::optional<double> local_error, propagated_error, gold_error;
  std::int64_t saturated = 0, non_finite = 0;
  std::optional<double> tokens_per_second, speed_ratio;  // speed_ratio: over the baseline's
  std::optional<double> mixer_seconds;
};

// Six digits, though its own interval is wider: arms stand beside each other, and on the same tokens their difference
// is known far better than either. A dash where there is none.
std::string perplexity_text(const ArmSummary& arm);
std::string same_top1_percent(const ArmSummary& arm);

std::vector<ArmSummary> summarise(const Results& results, const Workload& workload);  // in the order of results.arms

// The checkpoint folder's own name; where it lies, provenance says.
std::string checkpoint_name(const Results& results);

// "exact, bfloat16 state"; "replay, L = 16, float32 state, bfloat16 ring", followed by what is not the default.
std::string arm_description(const nlohmann::json& arm);

// One line each: "anarchism, wordnet: 24,000 tokens scored in 37 documents", "context 1,024, stride 512 ·
// teacher_forced · prompt: decode". Keys that `data` lacks are left out.
std::string data_line(const Workload& workload);
std::string warnings_of(const Workload& workload);  // a line each; "" where there is none
std::string mode_line(const Workload& workload);

}  // namespace replayeval::reports
