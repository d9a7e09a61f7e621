#include "eval/comparator/prepared_run.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "eval/model/architecture.h"

namespace replayeval {
namespace {

// Before weights are read or a result folder is touched.
void require_ring_forms(const Architecture& architecture, const std::vector<Arm>& arms) {
  for (const Arm& arm : arms) {
    if (arm.executor == Executor::replay && arm.ring_form == RingForm::deltas && !architecture.has_delta_rule())
      throw std::invalid_argument(
          fmt::format("arm \"{}\": ring_form deltas; expected inputs for a model without delta-rule layers", arm.name));
  }
}

}  // namespace

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
  const Architecture architecture = describe_architecture(checkpoint);
  std::vector<Arm> arms = arms_of(config, architecture.published_ring_form(), options.compute_dtype);
  require_ring_forms(architecture, arms);
  return {std::move(config), std::move(checkpoint), options, std::move(arms)};
}

}  // namespace replayeval
