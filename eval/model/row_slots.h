// Which sequences the rows of a call belong to, and where they stand.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace replayeval {

class RowSlots {
 public:
  // Row b belongs to slot b, of `positions`.size() slots. positions: tokens that each slot holds.
  explicit RowSlots(std::vector<std::int64_t> positions);
  // Row b belongs to slot slots[b]; negative: to none, a padded row at position 0. Throws std::invalid_argument on a
  // slot that does not exist or comes twice, and where all rows are padded.
  RowSlots(std::vector<std::int32_t> slots, const std::vector<std::int64_t>& slot_positions);

  std::int64_t rows() const { return static_cast<std::int64_t>(positions_.size()); }
  const std::vector<std::int64_t>& positions() const { return positions_; }  // of each row's next token
  std::int64_t longest() const { return longest_; }                          // the largest of them
  bool aligned() const { return aligned_; }    // all rows stand at one position and none is padded
  bool identity() const { return identity_; }  // row b is slot b, and there are no other slots
  bool any_padded() const { return padded_; }
  const std::vector<std::int32_t>& slots() const { return slots_; }

  // [rows] int32 on the device, for mixers; undefined for the identity.
  at::Tensor slots_on(const at::Device& device) const;
  // [rows] int64 on the device; padded rows say slot 0.
  at::Tensor readable_slots_on(const at::Device& device) const;
  // [rows] int64 on the device.
  at::Tensor positions_on(const at::Device& device) const;

 private:
  void look_at_positions();

  std::vector<std::int32_t> slots_;
  std::vector<std::int64_t> positions_;
  std::int64_t longest_ = 0;
  bool aligned_ = true, identity_ = true, padded_ = false;
};

}  // namespace replayeval
