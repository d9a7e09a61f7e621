#include "eval/comparator/prepared_run.h"

#include <fmt/format.h>

#include <utility>

#include "eval/model/architecture.h"

namespace replayeval {
namespace {

// Both before weights are read or a result folder is touched.
void require_ring_forms(const RunConfig& config, const Architecture& architecture) {
  if (architecture.has_delta_rule()) return;
  for (const ArmConfig& arm : config.arms) {
    if (arm.arm.executor == Executor::replay && arm.ring_form == RingForm::deltas)
      throw ConfigError(
          fmt::format("{}: key 'ring_form': arm '{}' has deltas; expected inputs (or published) for a {} "
                      "model, which has no delta-rule layers",
                      arm.ring_form_place, arm.arm.name, architecture.model_type));
  }
}

// A setting that changes nothing would be taken for one that was measured.
void require_numerics(const RunConfig& config, const Architecture& architecture) {
  const auto refuse = [&](const char* key, const char* layers) {
    if (const auto found = config.numerics_places.find(key); found != config.numerics_places.end())
      throw ConfigError(
          fmt::format("{}: key '{}': means nothing for a {} model, which has no {} layers; expected it only "
                      "with models that have",
                      found->second, key, architecture.model_type, layers));
  };
  if (!architecture.has_delta_rule())
    for (const char* key : {"beta", "log_decay", "qk_norm"}) refuse(key, "delta-rule");
  if (architecture.count(LayerKind::mamba2) == 0) refuse("dt_floor", "Mamba-2");
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
  require_ring_forms(config, architecture);
  require_numerics(config, architecture);
  std::vector<Arm> arms = arms_of(config, architecture.published_ring_form(), options.compute_dtype);
  return {std::move(config), std::move(checkpoint), options, std::move(arms)};
}

}  // namespace replayeval
