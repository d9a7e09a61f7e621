#include "eval/model/hybrid_cache.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace replayeval {
namespace {

// The arm's cursor on `device`, made at first use.
at::Tensor cursor_on(const at::Device& device, std::int64_t slots, ArmCaches& caches) {
  for (const at::Tensor& cursor : caches.cursors)
    if (cursor.device() == device) return cursor;
  return caches.cursors.emplace_back(at::zeros({slots}, at::TensorOptions().device(device).dtype(at::kInt)));
}

ArmCaches make_arm_caches(const Arm& arm, const std::vector<std::shared_ptr<const Mixer>>& mixers,
                          const std::vector<KeyValueShape>& attention, at::ScalarType compute_dtype, std::int64_t slots,
                          std::int64_t capacity) {
  ArmCaches caches;
  for (const auto& mixer : mixers) {
    const at::Device device = mixer->device();
    const at::Tensor cursor = arm.executor == Executor::replay ? cursor_on(device, slots, caches) : at::Tensor();
    caches.mixers.push_back(mixer->make_cache(arm, slots, compute_dtype, cursor));
  }
  for (const KeyValueShape& layer : attention) {
    const auto options = at::TensorOptions().device(layer.device).dtype(compute_dtype);
    caches.attention.push_back({at::empty({slots, layer.kv_heads, capacity, layer.key_dim}, options),
                                at::empty({slots, layer.kv_heads, capacity, layer.value_dim}, options)});
  }
  return caches;
}

}  // namespace

HybridCache::HybridCache(std::vector<Arm> arms, const std::vector<std::shared_ptr<const Mixer>>& mixers,
                         const std::vector<KeyValueShape>& attention, at::ScalarType compute_dtype, std::int64_t slots,
                         std::int64_t capacity)
    : arms_(std::move(arms)), slots_(slots), capacity_(capacity) {
  if (arms_.empty()) throw std::invalid_argument("decode cache: no arms; expected at least one");
  if (slots < 1 || capacity < 1)
    throw std::invalid_argument("decode cache: " + std::to_string(slots) + " slots of " + std::to_string(capacity) +
                                " tokens; expected at least one of each");
  for (const Arm& arm : arms_) validate(arm);
  for (const Arm& arm : arms_)
    caches_.push_back(make_arm_caches(arm, mixers, attention, compute_dtype, slots, capacity));
}

void HybridCache::reset() {
  position_ = 0;  // what lies behind it in the key and value caches is never read
  for (ArmCaches& caches : caches_) {
    for (const at::Tensor& cursor : caches.cursors) cursor.zero_();
    for (MixerCache& mixer : caches.mixers) {
      mixer.state.zero_();
      mixer.conv_state.zero_();
      for (at::Tensor& ring : mixer.ring) ring.zero_();
    }
  }
}

std::vector<StorageCounts> HybridCache::storage_counts(std::size_t arm) const {
  std::vector<StorageCounts> all;
  for (const MixerCache& mixer : caches_.at(arm).mixers) {
    const at::Tensor counts = mixer.counts.to(at::kCPU);
    const auto* values = counts.const_data_ptr<std::int64_t>();
    all.push_back({static_cast<std::uint64_t>(values[0]), static_cast<std::uint64_t>(values[1]),
                   static_cast<std::uint64_t>(values[2])});
  }
  return all;
}

SequenceBytes HybridCache::sequence_bytes(std::size_t arm) const {
  SequenceBytes bytes;
  for (const MixerCache& mixer : caches_[arm].mixers) {
    bytes.state += static_cast<std::int64_t>(mixer.state.nbytes()) / slots_;
    for (const at::Tensor& ring : mixer.ring) bytes.ring += static_cast<std::int64_t>(ring.nbytes()) / slots_;
  }
  return bytes;
}

void HybridCache::advance(std::int64_t tokens) {
  position_ += tokens;
  for (std::size_t a = 0; a < arms_.size(); ++a)
    for (const at::Tensor& cursor : caches_[a].cursors) advance_cursor(arms_[a], cursor, slots_, tokens);
}

}  // namespace replayeval
