// A run config with its checkpoint opened and its arms made: what every command that runs a config starts from.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "eval/checkpoint/checkpoint.h"
#include "eval/comparator/run_config.h"
#include "eval/model/model.h"

namespace replayeval {

struct PreparedRun {
  RunConfig config;
  Checkpoint checkpoint;
  ModelOptions options;
  std::vector<Arm> arms;
};

// `device` replaces the config's. Reads no weights yet. Throws ConfigError, also where the config asks for a ring form
// or a rounding that a model of this architecture does not have; CheckpointError, and std::invalid_argument on an arm
// that makes no sense.
PreparedRun prepare_run(const std::filesystem::path& config, const std::optional<DeviceKind>& device);

}  // namespace replayeval
