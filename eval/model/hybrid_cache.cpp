#include "eval/model/hybrid_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "eval/executors/stored_tensor.h"

namespace replayeval {
namespace {

constexpr std::int64_t step_keys = 128;  // of what attention reads in a step on a GPU, a multiple

// The arm's cursor on `device`, made at first use.
at::Tensor cursor_on(const at::Device& device, std::int64_t slots, ArmCaches& caches) {
  for (const at::Tensor& cursor : caches.cursors)
    if (cursor.device() == device) return cursor;
  return caches.cursors.emplace_back(at::zeros({slots}, at::TensorOptions().device(device).dtype(at::kInt)));
}

ArmCaches make_arm_caches(const Arm& arm, const std::vector<std::shared_ptr<const Mixer>>& mixers,
                          const std::vector<KeyValueShape>& attention, at::ScalarType compute_dtype, std::int64_t slots,
                          std::int64_t page_length) {
  ArmCaches caches;
  for (const auto& mixer : mixers) {
    const at::Device device = mixer->device();
    const at::Tensor cursor = arm.executor == Executor::replay ? cursor_on(device, slots, caches) : at::Tensor();
    caches.mixers.push_back(mixer->make_cache(arm, slots, compute_dtype, cursor));
  }
  for (const KeyValueShape& layer : attention)
    caches.attention.push_back(make_pools(layer, page_length, compute_dtype));
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
                         std::int64_t capacity, const KeyValuePageOptions& pages, std::string graph_obstacle)
    : arms_(std::move(arms)),
      slots_(slots),
      capacity_(capacity),
      positions_(static_cast<std::size_t>(std::max<std::int64_t>(slots, 0))),
      pages_(slots, capacity, pages),
      graph_obstacle_(std::move(graph_obstacle)) {
  if (graph_obstacle_.empty()) graphs_.emplace();
  if (arms_.empty()) throw std::invalid_argument("decode cache: no arms; expected at least one");
  if (slots < 1 || capacity < 1)
    throw std::invalid_argument("decode cache: " + std::to_string(slots) + " slots of " + std::to_string(capacity) +
                                " tokens; expected at least one of each");
  for (const Arm& arm : arms_) validate(arm);
  for (const Arm& arm : arms_)
    caches_.push_back(make_arm_caches(arm, mixers, attention, compute_dtype, slots, pages.page_length));
}

void HybridCache::reset() {
  std::fill(positions_.begin(), positions_.end(), 0);
  pages_.release_all();
  for (ArmCaches& caches : caches_) {
    for (const KeyValueCache& attention : caches.attention) {
      attention.keys.zero_();
      attention.values.zero_();
    }
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
  const std::vector<std::int64_t> pages = pages_.release(slot);
  for (ArmCaches& caches : caches_) {
    for (const KeyValueCache& pools : caches.attention) clear_pages(pools, pages, pages_.page_length());
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
  if (&source == this && slot == from_slot) return;
  copy_keys_and_values(slot, source, from_slot);
  for (std::size_t arm = 0; arm < caches_.size(); ++arm) {
    const ArmCaches& there = source.caches_[arm];
    for (std::size_t i = 0; i < there.cursors.size(); ++i)
      caches_[arm].cursors[i].select(0, slot).copy_(there.cursors[i].select(0, from_slot));
    for (std::size_t i = 0; i < there.mixers.size(); ++i)
      copy_mixer(caches_[arm].mixers[i], slot, there.mixers[i], from_slot);
  }
  positions_[static_cast<std::size_t>(slot)] = source.position(from_slot);
}

void HybridCache::store_prefilled(std::int64_t slot, const DecodeCache& from, std::int64_t from_slot) {
  const auto& source = dynamic_cast<const HybridCache&>(from);
  check_fits(slot, source, from_slot);
  if (source.arms_.size() != 1 || !same_arithmetic(source.arms_[0], prefill_arm()))
    throw std::invalid_argument("decode cache: a prompt's cache of " + std::to_string(source.arms_.size()) +
                                " arms; expected one, exact with float32 states");
  const ArmCaches& there = source.caches_[0];
  reset_slot(slot);  // rings and cursors
  copy_keys_and_values(slot, source, from_slot);
  for (std::size_t arm = 0; arm < caches_.size(); ++arm)
    for (std::size_t i = 0; i < there.mixers.size(); ++i)
      store_state(caches_[arm].mixers[i], slot, there.mixers[i], from_slot, arms_[arm].state_storage);
  positions_[static_cast<std::size_t>(slot)] = source.position(from_slot);
}

// Of one arm, where the source has only that.
void HybridCache::copy_keys_and_values(std::int64_t slot, const HybridCache& from, std::int64_t from_slot) {
  if (!has_attention()) return;
  const std::int64_t tokens = from.position(from_slot);
  reserve_tokens({{slot, tokens}});  // may throw: nothing has changed yet
  std::vector<std::int64_t> stale = pages_.release(slot, pages_.pages_for(tokens));
  stale.insert(stale.end(), pages_.of_slot(slot).begin(), pages_.of_slot(slot).end());
  const std::vector<std::int64_t> places = token_places(pages_, slot, tokens),
                                  from_places = token_places(from.pages_, from_slot, tokens);
  for (std::size_t arm = 0; arm < caches_.size(); ++arm) {
    const ArmCaches& there = from.caches_[from.caches_.size() == 1 ? 0 : arm];
    for (std::size_t i = 0; i < there.attention.size(); ++i) {
      clear_pages(caches_[arm].attention[i], stale, pages_.page_length());
      copy_tokens(caches_[arm].attention[i], places, there.attention[i], from_places);
    }
  }
}

void HybridCache::reserve_tokens(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths) {
  const std::optional<PageMoves> moves = pages_.reserve(lengths);
  if (!moves) return;
  if (graphs_) graphs_->forget();
  for (ArmCaches& caches : caches_)
    for (KeyValueCache& pools : caches.attention) move_pages(pools, *moves, pages_.page_length());
}

PagedRows HybridCache::reserve(const RowSlots& rows, std::int64_t tokens) {
  if (!has_attention()) return {};
  // Steps on a GPU, captured or not, read keys by the hundred, so that the same graph, and the same kernels, serve many
  // tokens. Pages that nobody counts are taken as early, so that rows can be read in place.
  const bool step = tokens == 1 && !caches_.front().attention.front().keys.is_cpu();
  const std::int64_t multiple = step && !pages_.limited() ? step_keys : 1;
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths;
  for (const std::int32_t slot : rows.slots())
    if (slot >= 0) lengths.emplace_back(slot, round_up(position(slot) + tokens, multiple));
  reserve_tokens(lengths);
  return {pages_, rows, tokens, step ? std::optional(step_keys) : std::nullopt};
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

KeyValueBytes HybridCache::key_value_bytes() const {
  KeyValueBytes bytes;
  for (const ArmCaches& caches : caches_)
    for (const KeyValueCache& attention : caches.attention)
      bytes.reserved += static_cast<std::int64_t>(attention.keys.nbytes() + attention.values.nbytes());
  bytes.held = bytes.reserved / pages_.pages() * pages_.held();
  return bytes;
}

std::vector<HeldTensor> HybridCache::held(std::int64_t slot) const {
  std::vector<HeldTensor> all;
  const std::vector<std::int64_t> places =
      has_attention() ? token_places(pages_, slot, position(slot)) : std::vector<std::int64_t>();
  for (std::size_t arm = 0; arm < caches_.size(); ++arm) {
    std::map<std::string, std::int64_t> counts;
    const auto add = [&](const char* part, const at::Tensor& value) {
      all.push_back({arm, part, counts[part]++, value});
    };
    for (const at::Tensor& cursor : caches_[arm].cursors) add("cursor", cursor.select(0, slot).clone());
    for (const MixerCache& mixer : caches_[arm].mixers) {
      add("state", mixer.state.select(0, slot).clone());
      add("convolution", mixer.conv_state.select(0, slot).clone());
      for (const at::Tensor& ring : mixer.ring) add("ring", ring.select(0, slot).clone());
    }
    for (const KeyValueCache& pools : caches_[arm].attention) {
      const KeyValueCache tokens = read_tokens(pools, places);
      add("keys", tokens.keys);
      add("values", tokens.values);
    }
  }
  return all;
}

std::string HybridCache::graph_obstacle() const {
  return graphs_ && !graphs_->failure().empty() ? graphs_->failure() : graph_obstacle_;
}

void HybridCache::advance_positions(const RowSlots& rows, std::int64_t tokens) {
  for (const std::int32_t slot : rows.slots())
    if (slot >= 0) positions_[static_cast<std::size_t>(slot)] += tokens;
}

void HybridCache::advance_cursors(const RowSlots& rows, std::int64_t tokens) const {
  for (std::size_t a = 0; a < arms_.size(); ++a)
    for (const at::Tensor& cursor : caches_[a].cursors)
      advance_cursor(arms_[a], cursor, rows.rows(), tokens, rows.places(tokens, cursor.device()).mixer_slots);
}

}  // namespace replayeval
