#include "eval/model/hybrid_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "eval/executors/stored_tensor.h"

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
    // Zeros: rows that stand behind the longest one read keys and values that nobody has written. Their weight is 0,
    // and 0 times what uninitialised memory may hold, NaN, is NaN.
    caches.attention.push_back({at::zeros({slots, layer.kv_heads, capacity, layer.key_dim}, options),
                                at::zeros({slots, layer.kv_heads, capacity, layer.value_dim}, options)});
  }
  return caches;
}

void copy_slot_of(const at::Tensor& to, std::int64_t slot, const at::Tensor& from, std::int64_t from_slot) {
  to.select(0, slot).copy_(from.select(0, from_slot));
}

void copy_mixer(MixerCache& to, std::int64_t slot, const MixerCache& from, std::int64_t from_slot) {
  copy_slot_of(to.state, slot, from.state, from_slot);
  copy_slot_of(to.conv_state, slot, from.conv_state, from_slot);
  for (std::size_t i = 0; i < from.ring.size(); ++i) copy_slot_of(to.ring[i], slot, from.ring[i], from_slot);
}

void copy_keys_and_values(const KeyValueCache& to, std::int64_t slot, const KeyValueCache& from, std::int64_t from_slot,
                          std::int64_t tokens) {
  copy_slot_of(to.keys.narrow(2, 0, tokens), slot, from.keys.narrow(2, 0, tokens), from_slot);
  copy_slot_of(to.values.narrow(2, 0, tokens), slot, from.values.narrow(2, 0, tokens), from_slot);
}

// The state of a prompt, float32, into an arm's storage; counted as a store of the kernels is.
void store_state(MixerCache& to, std::int64_t slot, const MixerCache& from, std::int64_t from_slot,
                 const Storage& storage) {
  const at::Tensor exact = from.state.select(0, from_slot);
  to.counts.add_(odd_stores(exact, storage));
  to.state.select(0, slot).copy_(stored(exact, storage));
  copy_slot_of(to.conv_state, slot, from.conv_state, from_slot);
}

}  // namespace

Arm prefill_arm() {
  Arm arm;
  arm.name = "prefill";
  return arm;
}

HybridCache::HybridCache(std::vector<Arm> arms, const std::vector<std::shared_ptr<const Mixer>>& mixers,
                         const std::vector<KeyValueShape>& attention, at::ScalarType compute_dtype, std::int64_t slots,
                         std::int64_t capacity)
    : arms_(std::move(arms)),
      slots_(slots),
      capacity_(capacity),
      positions_(static_cast<std::size_t>(std::max<std::int64_t>(slots, 0))) {
  if (arms_.empty()) throw std::invalid_argument("decode cache: no arms; expected at least one");
  if (slots < 1 || capacity < 1)
    throw std::invalid_argument("decode cache: " + std::to_string(slots) + " slots of " + std::to_string(capacity) +
                                " tokens; expected at least one of each");
  for (const Arm& arm : arms_) validate(arm);
  for (const Arm& arm : arms_)
    caches_.push_back(make_arm_caches(arm, mixers, attention, compute_dtype, slots, capacity));
}

void HybridCache::reset() {
  std::fill(positions_.begin(), positions_.end(),
            0);  // what lies behind in the caches of keys and values is never read
  for (ArmCaches& caches : caches_) {
    for (const at::Tensor& cursor : caches.cursors) cursor.zero_();
    for (MixerCache& mixer : caches.mixers) {
      mixer.state.zero_();
      mixer.conv_state.zero_();
      for (at::Tensor& ring : mixer.ring) ring.zero_();
    }
  }
}

void HybridCache::reset_slot(std::int64_t slot) {
  positions_.at(static_cast<std::size_t>(slot)) = 0;
  for (ArmCaches& caches : caches_) {
    for (const at::Tensor& cursor : caches.cursors) cursor.select(0, slot).zero_();
    for (MixerCache& mixer : caches.mixers) {
      mixer.state.select(0, slot).zero_();
      mixer.conv_state.select(0, slot).zero_();
      for (at::Tensor& ring : mixer.ring) ring.select(0, slot).zero_();
    }
  }
}

void HybridCache::check_fits(std::int64_t slot, const HybridCache& from, std::int64_t from_slot) const {
  if (slot < 0 || slot >= slots_ || from_slot < 0 || from_slot >= from.slots_)
    throw std::invalid_argument("decode cache: slot " + std::to_string(from_slot) + " of " +
                                std::to_string(from.slots_) + " to slot " + std::to_string(slot) + " of " +
                                std::to_string(slots_) + "; expected slots that exist");
  if (from.position(from_slot) > capacity_)
    throw std::invalid_argument("decode cache: a sequence of " + std::to_string(from.position(from_slot)) +
                                " tokens; expected at most the capacity of " + std::to_string(capacity_));
}

void HybridCache::copy_slot(std::int64_t slot, const DecodeCache& from, std::int64_t from_slot) {
  const auto& source = dynamic_cast<const HybridCache&>(from);
  check_fits(slot, source, from_slot);
  if (!std::equal(arms_.begin(), arms_.end(), source.arms_.begin(), source.arms_.end(),
                  [](const Arm& a, const Arm& b) { return same_arithmetic(a, b); }))
    throw std::invalid_argument("decode cache: the arms of the two caches differ; expected the same, in order");
  const std::int64_t tokens = source.position(from_slot);
  for (std::size_t arm = 0; arm < caches_.size(); ++arm) {
    const ArmCaches& there = source.caches_[arm];
    for (std::size_t i = 0; i < there.cursors.size(); ++i)
      caches_[arm].cursors[i].select(0, slot).copy_(there.cursors[i].select(0, from_slot));
    for (std::size_t i = 0; i < there.mixers.size(); ++i)
      copy_mixer(caches_[arm].mixers[i], slot, there.mixers[i], from_slot);
    for (std::size_t i = 0; i < there.attention.size(); ++i)
      copy_keys_and_values(caches_[arm].attention[i], slot, there.attention[i], from_slot, tokens);
  }
  positions_[static_cast<std::size_t>(slot)] = tokens;
}

void HybridCache::store_prefilled(std::int64_t slot, const DecodeCache& from, std::int64_t from_slot) {
  const auto& source = dynamic_cast<const HybridCache&>(from);
  check_fits(slot, source, from_slot);
  if (source.arms_.size() != 1 || !same_arithmetic(source.arms_[0], prefill_arm()))
    throw std::invalid_argument("decode cache: a prompt's cache of " + std::to_string(source.arms_.size()) +
                                " arms; expected one, exact with float32 states");
  const ArmCaches& there = source.caches_[0];
  reset_slot(slot);  // rings and cursors
  const std::int64_t tokens = source.position(from_slot);
  for (std::size_t arm = 0; arm < caches_.size(); ++arm) {
    for (std::size_t i = 0; i < there.mixers.size(); ++i)
      store_state(caches_[arm].mixers[i], slot, there.mixers[i], from_slot, arms_[arm].state_storage);
    for (std::size_t i = 0; i < there.attention.size(); ++i)
      copy_keys_and_values(caches_[arm].attention[i], slot, there.attention[i], from_slot, tokens);
  }
  positions_[static_cast<std::size_t>(slot)] = tokens;
}

RowSlots HybridCache::rows(const std::vector<std::int32_t>& slots) const {
  return slots.empty() ? RowSlots(positions_) : RowSlots(slots, positions_);
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

void HybridCache::advance(const RowSlots& rows, std::int64_t tokens) {
  for (const std::int32_t slot : rows.slots())
    if (slot >= 0) positions_[static_cast<std::size_t>(slot)] += tokens;
  for (std::size_t a = 0; a < arms_.size(); ++a)
    for (const at::Tensor& cursor : caches_[a].cursors)
      advance_cursor(arms_[a], cursor, rows.rows(), tokens, rows.places(tokens, cursor.device()).mixer_slots);
}

}  // namespace replayeval
