// Which GPU holds which layers, when one is too small for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace replayeval {

// Bytes of a model's weights, in the order in which a token passes them.
struct PartBytes {
  std::int64_t embeddings = 0;
  std::vector<std::int64_t> layers;
  std::int64_t head = 0;
};

struct DeviceBudget {
  std::string name;        // as messages have it: "cuda:0"
  std::int64_t bytes = 0;  // free for weights
};

// Indices into the budgets.
struct DevicePlan {
  std::size_t embeddings = 0, head = 0;
  std::vector<std::size_t> layers;
  std::vector<std::int64_t> used;  // [budgets] bytes
};

enum class Spread : std::uint8_t {
  fewest,  // no more devices, from the first on, than the weights need
  all      // every device, as far as there are layers
};

// Devices get neighbouring layers, in their order, so that the stream crosses between two devices once. Of all such
// plans the one whose fullest device, relative to its budget, is least full. Throws std::runtime_error, in one line
// with the bytes needed and those free on each device, when none fits; std::invalid_argument without budgets.
DevicePlan plan_devices(const PartBytes& parts, const std::vector<DeviceBudget>& budgets, Spread spread);

}  // namespace replayeval
