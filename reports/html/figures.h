// The figures of one workload, section by section. Each function returns markup, "" where the results hold nothing to
// draw; the numbers behind a figure stand in its section's tables unless it brings its own.
#pragma once

#include <string>
#include <vector>

#include "reports/bench_file.h"
#include "reports/findings.h"
#include "reports/kernel_group.h"
#include "reports/results.h"

namespace replayeval::reports::html {

struct Shown {  // what is drawn, and how its ids begin
  const Results& results;
  const Workload& workload;
  std::string id;
  int heading = 3;  // level of its sections' headings
};

std::string position_figures(const Shown& shown);     // ΔPPL by position, with bands
std::string divergence_figures(const Shown& shown);   // spreads of KL and Δp
std::string state_error_figures(const Shown& shown);  // by tokens decoded at three depths; by layer and head
std::string recall_figures(const Shown& shown);       // by length and depth, a map an arm and task
std::string generation_figures(const Shown& shown);   // agreement by tokens; signs of degeneration

// Of all runs.
std::string task_figures(const std::vector<Run>& runs);          // a forest a metric, over all runs, tasks and arms
std::string side_by_side_figures(const std::vector<Run>& runs);  // the change of perplexity, run by run
std::string pareto_figures(const std::vector<Run>& runs, const std::vector<BenchFile>& benches);

std::string kernel_bench_figures(const KernelGroup& group, const std::string& id);
std::string model_bench_figures(const ModelBench& bench, const std::string& id);

}  // namespace replayeval::reports::html
