#include "eval/executors/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace replayeval {
namespace {

// Of several pools the allocator tells apart, the sum.
constexpr auto all_pools = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

DeviceMemory device_memory(const at::Device& device) {
  c10::DeviceAllocator* allocator = c10::getDeviceAllocator(device.type());
  const auto stats = allocator->getDeviceStats(device.index());
  const auto [free, total] = allocator->getMemoryInfo(device.index());
  return {stats.allocated_bytes[all_pools].current, stats.allocated_bytes[all_pools].peak,
          static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

void reset_peak_memory(const at::Device& device) {
  c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}

void release_cached_memory(const at::Device& device) { c10::getDeviceAllocator(device.type())->emptyCache(); }

void synchronise(const at::Device& device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace replayeval
