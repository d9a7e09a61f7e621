// The main job: every workload of a config under all arms, into a result folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "eval/comparator/baseline/baseline_format.h"
#include "kernels/types.h"
#include "reports/results.h"

namespace replayeval {

struct RunRequest {
  std::filesystem::path config;
  std::optional<DeviceKind> device;              // instead of the config's
  std::optional<std::filesystem::path> output;   // default: results/NAME, NAME being the config's
  std::optional<std::string> only;               // one workload by name
  std::optional<BaselineRequest> save_baseline;  // kept below the result folder's baseline/
  std::optional<std::filesystem::path> against;  // a baseline's folder, to compare perplexity workloads with
  bool overwrite = false;
  bool quiet = false;
};

struct RunOutcome {
  reports::Results results;
  std::filesystem::path folder;
  bool was_complete = false;  // everything asked for was there already
};

// Resumes a folder that the same config left; refuses another's, and unfinished work of another revision
// (result_folder.h). Complete results are handed over whatever revision they are of: results.tool says which.
// A baseline is kept of perplexity workloads; results that are complete without the one asked for are refused.
// results.json, report.md and report.html are written after each workload. Interrupted, when asked to stop, says what
// is kept. Throws what its parts throw, each a one-line message; std::invalid_argument when `only` names no workload,
// and when CUDA is asked for but not to be had.
RunOutcome run(const RunRequest& request);

}  // namespace replayeval
