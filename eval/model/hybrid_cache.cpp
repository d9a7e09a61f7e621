#include "eval/model/hybrid_cache.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace replayeval {
namespace {

ArmCaches make_arm_caches(const Arm& arm, const std::vector<Mamba2Mixer>& mixers, const HybridCacheShape& shape,
                          std::int64_t slots, std::int64_t capacity) {
  ArmCaches caches;
  const auto options = at::TensorOptions().device(shape.device);
  if (arm.executor == Executor::replay) caches.cursor = at::zeros({slots}, options.dtype(at::kInt));
  for (const Mamba2Mixer& mixer : mixers)
    caches.mixers.push_back(make_mamba2_cache(mixer, arm, slots, shape.compute_dtype, shape.device, caches.cursor));
  for (std::int64_t layer = 0; layer < shape.attention_layers; ++layer) {
    const auto make = [&] {
      return at::empty({slots, shape.kv_heads, capacity, shape.head_dim}, options.dtype(shape.compute_dtype));
    };
    caches.attention.push_back({make(), make()});
  }
  return caches;
}

}  // namespace

HybridCache::HybridCache(std::vector<Arm> arms, const std::vector<Mamba2Mixer>& mixers, const HybridCacheShape& shape,
                         std::int64_t slots, std::int64_t capacity)
    : arms_(std::move(arms)), slots_(slots), capacity_(capacity) {
  if (arms_.empty()) throw std::invalid_argument("decode cache: no arms; expected at least one");
  if (slots < 1 || capacity < 1)
    throw std::invalid_argument("decode cache: " + std::to_string(slots) + " slots of " + std::to_string(capacity) +
                                " tokens; expected at least one of each");
  for (const Arm& arm : arms_) validate(arm);
  for (const Arm& arm : arms_) caches_.push_back(make_arm_caches(arm, mixers, shape, slots, capacity));
}

void HybridCache::reset() {
  position_ = 0;  // what lies behind it in the key and value caches is never read
  for (ArmCaches& caches : caches_) {
    if (caches.cursor.defined()) caches.cursor.zero_();
    for (Mamba2Cache& mixer : caches.mixers)
      for (at::Tensor* tensor : {&mixer.state, &mixer.conv_state, &mixer.ring_x, &mixer.ring_B, &mixer.ring_dt})
        if (tensor->defined()) tensor->zero_();
  }
}

std::vector<StorageCounts> HybridCache::storage_counts(std::size_t arm) const {
  std::vector<StorageCounts> all;
  for (const Mamba2Cache& mixer : caches_.at(arm).mixers) {
    const at::Tensor counts = mixer.counts.to(at::kCPU);
    const auto* values = counts.const_data_ptr<std::int64_t>();
    all.push_back({static_cast<std::uint64_t>(values[0]), static_cast<std::uint64_t>(values[1]),
                   static_cast<std::uint64_t>(values[2])});
  }
  return all;
}

SequenceBytes HybridCache::sequence_bytes(std::size_t arm) const {
  SequenceBytes bytes;
  const auto size_of = [](const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : std::int64_t{0};
  };
  for (const Mamba2Cache& mixer : caches_[arm].mixers) {
    bytes.state += size_of(mixer.state) / slots_;
    bytes.ring += (size_of(mixer.ring_x) + size_of(mixer.ring_B) + size_of(mixer.ring_dt)) / slots_;
  }
  return bytes;
}

void HybridCache::advance(std::int64_t tokens) {
  position_ += tokens;
  for (std::size_t a = 0; a < arms_.size(); ++a)
    if (caches_[a].cursor.defined()) advance_cursor(arms_[a], caches_[a].cursor, slots_, tokens);
}

}  // namespace replayeval
