// Where a model's parts go, before its architecture loads them.
#include <ATen/Context.h>
#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "eval/executors/device.h"
#include "eval/executors/device_memory.h"
#include "eval/model/architecture.h"
#include "eval/model/device_plan.h"
#include "eval/model/model.h"
#include "eval/model/registry.h"

namespace replayeval {
namespace {

// The rest is for caches, activations and what CUDA itself takes.
constexpr double share_for_weights = 0.9;

// All visible GPUs for `auto`, the first one where nothing was said.
std::vector<at::Device> devices_of(const ModelOptions& options) {
  const c10::DeviceIndex count = at::globalContext().getAcceleratorHooksInterface(at::kCUDA).deviceCount();
  std::vector<at::Device> devices;
  std::set<int> seen;
  for (const int gpu : options.gpus) {
    if (gpu < 0 || gpu >= count || !seen.insert(gpu).second)
      throw std::runtime_error(fmt::format("device cuda:{}: {}; expected different ones of the {} GPUs that are there",
                                           gpu, gpu < 0 || gpu >= count ? "is not there" : "stands twice", count));
    devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  }
  if (options.all_gpus)
    for (int gpu = 0; gpu < count; ++gpu) devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  if (devices.empty()) devices.push_back(torch_device(options.device));
  return devices;
}

std::shared_ptr<const Placement> place(const WeightTotals& totals, const ModelOptions& options) {
  const std::vector<at::Device> devices = devices_of(options);
  std::vector<DeviceBudget> budgets;
  for (const at::Device& device : devices)
    budgets.push_back(
        {device.str(), static_cast<std::int64_t>(share_for_weights * static_cast<double>(device_memory(device).free))});
  const DevicePlan plan = plan_devices({totals.embedding_bytes, totals.layer_bytes, totals.head_bytes}, budgets,
                                       options.all_gpus ? Spread::fewest : Spread::all);
  auto placement = std::make_shared<Placement>();
  placement->embeddings = devices[plan.embeddings];
  placement->head = devices[plan.head];
  for (const std::size_t device : plan.layers) placement->layers.push_back(devices[device]);
  return placement;
}

}  // namespace

WeightTotals weight_totals(const Checkpoint& checkpoint, const ModelOptions& options) {
  auto nowhere = std::make_shared<Placement>();
  const at::Device meta(at::kMeta);
  *nowhere = {meta, std::vector<at::Device>(describe_architecture(checkpoint).layers.size(), meta), meta};
  ModelOptions shapes = options;
  shapes.placement = std::move(nowhere);
  return load_registered(checkpoint, shapes)->weight_totals();
}

std::unique_ptr<Model> load_model(const Checkpoint& checkpoint, const ModelOptions& options) {
  if (options.device == DeviceKind::cpu || options.placement) return load_registered(checkpoint, options);
  torch_device(options.device);  // throws: no such device
  ModelOptions placed = options;
  placed.placement = place(weight_totals(checkpoint, options), options);
  return load_registered(checkpoint, placed);
}

}  // namespace replayeval
