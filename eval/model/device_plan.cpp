#include "eval/model/device_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace replayeval {
namespace {

// Embeddings, layers and head as one sequence.
std::vector<std::int64_t> in_order(const PartBytes& parts) {
  std::vector<std::int64_t> bytes = {parts.embeddings};
  bytes.insert(bytes.end(), parts.layers.begin(), parts.layers.end());
  bytes.push_back(parts.head);
  return bytes;
}

// The device of each part when every device is filled up to `share` of its budget before the next one begins; nothing
// if parts are left over. Filling in order is best possible: whatever another plan has on the first devices, this one
// has too.
std::optional<std::vector<std::size_t>> fill(const std::vector<std::int64_t>& bytes,
                                             std::span<const DeviceBudget> budgets, double share) {
  std::vector<std::size_t> device_of;
  std::size_t device = 0;
  std::int64_t used = 0;
  for (const std::int64_t part : bytes) {
    while (static_cast<double>(used + part) > share * static_cast<double>(budgets[device].bytes)) {
      if (++device == budgets.size()) return std::nullopt;
      used = 0;
    }
    used += part;
    device_of.push_back(device);
  }
  return device_of;
}

std::string gibibytes(std::int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1LL << 30));
}

[[noreturn]] void refuse(const std::vector<std::int64_t>& bytes, const std::vector<DeviceBudget>& budgets) {
  std::string free;
  for (const DeviceBudget& budget : budgets)
    free += fmt::format("{}{} on {}", free.empty() ? "" : ", ", gibibytes(budget.bytes), budget.name);
  throw std::runtime_error(fmt::format("the weights need {} ({} bytes), the largest part {}; free for them: {}",
                                       gibibytes(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0})),
                                       std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}),
                                       gibibytes(*std::max_element(bytes.begin(), bytes.end())), free));
}

}  // namespace

DevicePlan plan_devices(const PartBytes& parts, const std::vector<DeviceBudget>& budgets, Spread spread) {
  if (budgets.empty()) throw std::invalid_argument("device plan: no devices; expected at least one");
  const std::vector<std::int64_t> bytes = in_order(parts);
  std::span<const DeviceBudget> chosen(budgets);
  if (spread == Spread::fewest)
    while (chosen.size() > 1 && fill(bytes, chosen.first(chosen.size() - 1), 1.0))
      chosen = chosen.first(chosen.size() - 1);
  auto best = fill(bytes, chosen, 1.0);
  if (!best) refuse(bytes, budgets);
  double low = 0.0, high = 1.0;
  for (int step = 0; step < 40; ++step) {
    const double middle = (low + high) / 2.0;
    auto tried = fill(bytes, chosen, middle);
    (tried ? high : low) = middle;
    if (tried) best = std::move(tried);
  }
  DevicePlan plan;
  plan.embeddings = best->front();
  plan.head = best->back();
  plan.layers.assign(best->begin() + 1, best->end() - 1);
  plan.used.resize(budgets.size());
  for (std::size_t part = 0; part < bytes.size(); ++part) plan.used[(*best)[part]] += bytes[part];
  return plan;
}

}  // namespace replayeval
