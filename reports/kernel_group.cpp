#include "reports/kernel_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <variant>

namespace replayeval::reports {
namespace {

bool one_layer(const KernelBench& a, const KernelBench& b) {
  return std::tie(a.family, a.device, a.shape, a.route, a.flush) ==
         std::tie(b.family, b.device, b.shape, b.route, b.flush);
}

bool measure_the_same(const KernelBench& a, const KernelBench& b) {
  if (std::tie(a.ring, a.ring_form, a.buffer_len) != std::tie(b.ring, b.ring_form, b.buffer_len)) return false;
  return std::any_of(a.rows.begin(), a.rows.end(), [&](const KernelBench::Row& row) {
    return std::any_of(b.rows.begin(), b.rows.end(), [&](const KernelBench::Row& other) {
      return row.batch == other.batch && row.state == other.state;
    });
  });
}

bool belongs(const KernelGroup& group, const KernelBench& bench) {
  return one_layer(group.first(), bench) &&
         std::none_of(group.benches.begin(), group.benches.end(),
                      [&](const KernelBench* other) { return measure_the_same(*other, bench); });
}

}  // namespace

std::vector<std::string> KernelGroup::rings() const {
  std::vector<std::string> names;
  for (const KernelBench* bench : benches)
    if (std::find(names.begin(), names.end(), ring_name(*bench)) == names.end()) names.push_back(ring_name(*bench));
  return names;
}

std::vector<std::int64_t> KernelGroup::buffer_lens(const std::string& ring) const {
  std::set<std::int64_t> lengths;
  for (const KernelBench* bench : benches)
    if (ring_name(*bench) == ring) lengths.insert(bench->buffer_len);
  return {lengths.begin(), lengths.end()};
}

bool KernelGroup::any_mixed() const {
  return std::any_of(benches.begin(), benches.end(), [](const KernelBench* bench) {
    return std::any_of(bench->rows.begin(), bench->rows.end(),
                       [](const KernelBench::Row& row) { return row.mixed.has_value(); });
  });
}

std::vector<KernelGroup> kernel_groups(const std::vector<BenchFile>& files) {
  std::vector<KernelGroup> groups;
  for (const BenchFile& file : files) {
    const auto* bench = std::get_if<KernelBench>(&file.bench);
    if (bench == nullptr) continue;
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const KernelGroup& known) { return belongs(known, *bench); });
    (group == groups.end() ? groups.emplace_back() : *group).benches.push_back(bench);
  }
  for (KernelGroup& group : groups)
    std::stable_sort(group.benches.begin(), group.benches.end(), [](const KernelBench* a, const KernelBench* b) {
      return std::tie(a->ring_form, a->ring, a->buffer_len) < std::tie(b->ring_form, b->ring, b->buffer_len);
    });
  return groups;
}

std::string ring_name(const KernelBench& bench) { return fmt::format("{} ring of {}", bench.ring, bench.ring_form); }

std::string heading_of(const KernelGroup& group) {
  std::set<std::int64_t> lengths;
  for (const KernelBench* bench : group.benches) lengths.insert(bench->buffer_len);
  const KernelBench& first = group.first();
  const bool usual = first.route == "output_only" && first.flush == "summed";
  return fmt::format("Kernels: {}, L = {}, {}{}; {}", first.family, fmt::join(lengths, ", "),
                     fmt::join(group.rings(), ", "), usual ? "" : fmt::format(", {}, {}", first.route, first.flush),
                     first.device);
}

}  // namespace replayeval::reports
