// Which workloads and arms a rule speaks of.
#pragma once

#include <string>
#include <vector>

#include "reports/gate/policy.h"
#include "reports/results.h"

namespace replayeval::reports::gate {

struct Fault {
  std::string workload, arm, text;
};

struct Selection {
  std::vector<const Workload*> workloads;  // those that have the metric, or must have it
  std::vector<std::string> arms;
  // A glob that matches nothing, a workload of the config that was not run, one without results, a rule that matches
  // nothing at all.
  std::vector<Fault> faults;
};

Selection select(const Rule& rule, const Results& results);

// Names of the rule's metric that any arm has in the workload.
std::vector<std::string> metrics_in(const Rule& rule, const Workload& workload);

// "no arm has delta.x in this workload of kind task; there are acc, acc_norm"
std::string no_such_metric(const Rule& rule, const Workload& workload);

bool matches(const std::string& glob, const std::string& name);  // *, ? and [...]; the whole name

}  // namespace replayeval::reports::gate
