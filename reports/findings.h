// What all results say together: a finding for every arm and workload, and one sentence over all of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/results.h"
#include "reports/verdict.h"

namespace replayeval::reports {

struct Finding {
  std::string run;  // what its results are called
  std::string workload, kind;
  std::string arm;      // "" of a churn workload: all arms together
  bool replay = false;  // of an arm that replays
  Verdict verdict;
};

struct Run {
  std::string name;  // unique among those that are shown together
  Results results;
  std::filesystem::path path = {};  // where they were read from
};

// Named after its config, or after `path` where that has no name.
Run run_of(const Results& results, const std::filesystem::path& path);
// Names that several have get what tells their folders apart, or else numbers.
void make_names_unique(std::vector<Run>& runs);

std::vector<Finding> findings(const std::vector<Run>& runs);

// Of the arms that replay; where none does, of all but the baselines. E.g. "Replay costs no measurable quality in any
// of 8 comparisons: 2 are identical, 6 show no measurable change." What is better by more than noise is counted
// apart, and of many comparisons it is said how many would look worse by chance alone.
Verdict overall_verdict(const std::vector<Finding>& findings);

}  // namespace replayeval::reports
