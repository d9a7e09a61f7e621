// The caches of a hybrid model: per arm the states and rings of its mixers and the keys and values of its attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "eval/model/model.h"

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
  std::int64_t position() const override { return position_; }
  std::vector<StorageCounts> storage_counts(std::size_t arm) const override;
  SequenceBytes sequence_bytes(std::size_t arm) const override;

  std::int64_t num_arms() const { return static_cast<std::int64_t>(arms_.size()); }
  ArmCaches& of(std::int64_t arm) { return caches_[static_cast<std::size_t>(arm)]; }
  const Arm& arm(std::int64_t arm) const { return arms_[static_cast<std::size_t>(arm)]; }
  void advance(std::int64_t tokens);  // after a step of all layers: moves position and every arm's cursor

 private:
  std::vector<Arm> arms_;
  std::vector<ArmCaches> caches_;
  std::int64_t slots_, capacity_, position_ = 0;
};

}  // namespace replayeval
