// The caches of a hybrid model: per arm the states and rings of its mixers and the keys and values of its attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "eval/model/key_value_pools.h"
#include "eval/model/model.h"
#include "eval/model/paged_rows.h"
#include "eval/model/row_slots.h"
#include "eval/model/step_graphs.h"

namespace replayeval {

struct ArmCaches {
  std::vector<at::Tensor> cursors;  // [slots] int32 each: one a device, shared by the arm's mixers there; none if exact
  std::vector<MixerCache> mixers;   // in layer order
  std::vector<KeyValueCache> attention;
};

class HybridCache : public DecodeCache {
 public:
  // A mixer's cache lives where the mixer's weights do.
  // Throws std::invalid_argument as Model::make_cache().
  HybridCache(std::vector<Arm> arms, const std::vector<std::shared_ptr<const Mixer>>& mixers,
              const std::vector<KeyValueShape>& attention, at::ScalarType compute_dtype, std::int64_t slots,
              std::int64_t capacity, const KeyValuePageOptions& pages,
              std::string graph_obstacle = "not a model's cache");

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
  KeyValueBytes key_value_bytes() const override;
  std::vector<HeldTensor> held(std::int64_t slot) const override;
  std::string graph_obstacle() const override;

  std::int64_t num_arms() const { return static_cast<std::int64_t>(arms_.size()); }
  ArmCaches& of(std::int64_t arm) { return caches_[static_cast<std::size_t>(arm)]; }
  const KeyValuePages& pages() const { return pages_; }
  const Arm& arm(std::int64_t arm) const { return arms_[static_cast<std::size_t>(arm)]; }
  // The rows of a call; no slots: the identity. Throws std::invalid_argument as RowSlots.
  RowSlots rows(const std::vector<std::int32_t>& slots) const;
  // Pages for `tokens` more of each row, before a step of all layers. Throws OutOfPages.
  PagedRows reserve(const RowSlots& rows, std::int64_t tokens);
  // After a step of all layers: the cursors, which lie on the devices, and positions, which are the host's.
  void advance_cursors(const RowSlots& rows, std::int64_t tokens) const;
  void advance_positions(const RowSlots& rows, std::int64_t tokens);
  void advance(const RowSlots& rows, std::int64_t tokens) {  // both
    advance_cursors(rows, tokens);
    advance_positions(rows, tokens);
  }

  // One-token steps that are captured; null where graph_obstacle() says why none is.
  StepGraphs* graphs() { return graphs_ ? &*graphs_ : nullptr; }

 private:
  bool has_attention() const { return !caches_.front().attention.empty(); }
  void reserve_tokens(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths);
  void copy_keys_and_values(std::int64_t slot, const HybridCache& from, std::int64_t from_slot);
  void check_fits(std::int64_t slot, const HybridCache& from, std::int64_t from_slot) const;

  std::vector<Arm> arms_;
  std::vector<ArmCaches> caches_;
  std::int64_t slots_, capacity_;
  std::vector<std::int64_t> positions_;  // by slot
  KeyValuePages pages_;
  std::string graph_obstacle_;
  std::optional<StepGraphs> graphs_;
};

}  // namespace replayeval
