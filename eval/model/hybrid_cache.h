// The caches of a hybrid model: per arm the states and rings of its mixers and the keys and values of its attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "eval/model/model.h"
#include "eval/model/row_slots.h"

namespace replayeval {

struct KeyValueCache {
  at::Tensor keys, values;  // [slots, kv_heads, capacity, head_dim], compute dtype
};

struct ArmCaches {
  std::vector<at::Tensor> cursors;  // [slots] int32 each: one a device, shared by the arm's mixers there; none if exact
  std::vector<MixerCache> mixers;   // in layer order
  std::vector<KeyValueCache> attention;
};

struct KeyValueShape {  // of one attention layer
  std::int64_t kv_heads = 0, key_dim = 0, value_dim = 0;
  at::Device device = at::Device(at::kCPU);
};

class HybridCache : public DecodeCache {
 public:
  // A mixer's cache lives where the mixer's weights do.
  // Throws std::invalid_argument on no arms, on an arm that makes no sense, and on slots or capacity below 1.
  HybridCache(std::vector<Arm> arms, const std::vector<std::shared_ptr<const Mixer>>& mixers,
              const std::vector<KeyValueShape>& attention, at::ScalarType compute_dtype, std::int64_t slots,
              std::int64_t capacity);

  const std::vector<Arm>& arms() const override { return arms_; }
  std::int64_t slots() const override { return slots_; }
  std::int64_t capacity() const override { return capacity_; }
  void reset() override;
  void reset_slot(std::int64_t slot) override;
  std::int64_t position(std::int64_t slot) const override { return positions_.at(static_cast<std::size_t>(slot)); }
  void copy_slot(std::int64_t slot, const DecodeCache& from, std::int64_t from_slot) override;
  void store_prefilled(std::int64_t slot, const DecodeCache& from, std::int64_t from_slot) override;
  std::vector<StorageCounts> storage_counts(std::size_t arm) const override;
  SequenceBytes sequence_bytes(std::size_t arm) const override;

  std::int64_t num_arms() const { return static_cast<std::int64_t>(arms_.size()); }
  ArmCaches& of(std::int64_t arm) { return caches_[static_cast<std::size_t>(arm)]; }
  const Arm& arm(std::int64_t arm) const { return arms_[static_cast<std::size_t>(arm)]; }
  // The rows of a call; no slots: the identity. Throws std::invalid_argument as RowSlots.
  RowSlots rows(const std::vector<std::int32_t>& slots) const;
  void advance(const RowSlots& rows, std::int64_t tokens);  // after a step of all layers: positions and cursors

 private:
  std::vector<Arm> arms_;
  std::vector<ArmCaches> caches_;
  void check_fits(std::int64_t slot, const HybridCache& from, std::int64_t from_slot) const;

  std::int64_t slots_, capacity_;
  std::vector<std::int64_t> positions_;  // by slot
};

}  // namespace replayeval
