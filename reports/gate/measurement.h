// The numbers of results that a rule speaks of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/gate/policy.h"
#include "reports/results.h"

namespace replayeval::reports::gate {

struct Measurement {
  std::string workload;  // "" for several tasks pooled
  std::string arm, metric;
  double value = 0.0;
  std::optional<Interval> interval;
  std::optional<double> confidence;
  std::optional<std::int64_t> n;
  // Resampling units (documents or blocks) behind the interval, as far as results say; never more than n.
  std::optional<std::int64_t> units;
  std::string unit;        // what n counts: tokens, documents, sequences, answers
  bool of_shares = false;  // the interval is a score interval
  std::string method;      // of it, for people
  std::string fault;       // why there is no number; everything but workload, arm and metric is then meaningless
  // Why the number decides nothing: the two runs' machines differ, or the margin holds whatever the arm does.
  std::string doubt;
};

struct NamedRun {
  std::string name;  // for messages: the path that the user gave
  const Results& results;
  bool is_the_run = false;  // of a release: these are the run's own results, see are_one_run
};

const Workload* workload_of(const Results& results, const std::string& name);  // null: there is none

// At least one: where nothing is found, one whose `fault` says so.
std::vector<Measurement> measure(const Rule& rule, const NamedRun& run, const std::optional<NamedRun>& release);

}  // namespace replayeval::reports::gate
