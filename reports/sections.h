// The sections of a report, as blocks that begin with a heading of level 3. Each is empty when the results hold nothing
// for it.
#pragma once

#include <string>
#include <vector>

#include "reports/bench_file.h"
#include "reports/document.h"
#include "reports/kernel_group.h"
#include "reports/results.h"

namespace replayeval::reports::sections {

Blocks compared(const Results& results, const Workload& workload);  // the arms, the text, the mode
Table arms(const Results& results);                                 // what each is; the baseline is marked
Blocks data(const Workload& workload);                              // without a heading: the text, the mode, warnings
Blocks verdicts(const Results& results, const Workload& workload);
Blocks summary(const Results& results, const Workload& workload);
Blocks deltas(const Results& results, const Workload& workload);  // every delta with interval and method
Blocks divergence(const Results& results, const Workload& workload);
Blocks against(const Results& results, const Workload& workload);  // a stored baseline
Blocks positions(const Results& results, const Workload& workload);
Blocks generation(const Results& results, const Workload& workload);   // degeneration and agreement
Blocks recall(const Results& results, const Workload& workload);       // pooled, and by length and depth
Blocks churn(const Results& results, const Workload& workload);        // what was compared, and what it found
Blocks state_error(const Results& results, const Workload& workload);  // three depths, a row a layer and position
Blocks task(const Results& results, const Workload& workload);         // a downstream task's metrics and deltas
Blocks storage(const Results& results, const Workload& workload);
Blocks speed(const Results& results, const Workload& workload);  // seconds, tokens/s, bytes, kernel times
Blocks kernel_bench(const KernelGroup& group);
Blocks model_bench(const ModelBench& bench);
Table bench_files(const std::vector<BenchFile>& files);  // where each comes from
// Bytes a sequence, and how many sequences fit where states and rings may take so many bytes. Without rows where no
// workload measured them.
Table memory(const Results& results, const std::vector<double>& memories);
Text memory_note();
Blocks task_families(const Results& results);  // begins with a heading of level 2, as does provenance
Blocks provenance(const Results& results);
// What a report of results that contradict themselves begins with; nothing for others.
Blocks contradiction(const Results& results);

using Section = Blocks (*)(const Results&, const Workload&);
std::vector<Section> of_kind(const std::string& workload_kind);  // in the order to show them in

}  // namespace replayeval::reports::sections
