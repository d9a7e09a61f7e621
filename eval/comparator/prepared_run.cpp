#include "eval/comparator/prepared_run.h"

#include <utility>

#include "eval/model/architecture.h"

namespace replayeval {

PreparedRun prepare_run(const std::filesystem::path& config_file, const std::optional<DeviceKind>& device) {
  RunConfig config = load_run_config(config_file);
  if (device) config.device = *device;
  Checkpoint checkpoint = config.random_weights ? Checkpoint::open_config(config.checkpoint_folder)
                                                : Checkpoint::open(config.checkpoint_folder);
  ModelOptions options;
  options.device = config.device;
  options.compute_dtype = compute_dtype_of(config, stored_dtype(checkpoint));
  options.dt_floor = config.dt_floor;
  options.norm_span = config.norm_span;
  options.delta_rule = config.delta_rule;
  options.gpus = config.gpus;
  options.all_gpus = config.all_gpus;
  if (config.random_weights) options.random_seed = config.seed;
  std::vector<Arm> arms =
      arms_of(config, describe_architecture(checkpoint).published_ring_form(), options.compute_dtype);
  return {std::move(config), std::move(checkpoint), options, std::move(arms)};
}

}  // namespace replayeval
