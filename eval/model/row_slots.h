// Which sequences the rows of a call belong to, and where they stand.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <vector>

namespace replayeval {

// The same on a device, where a call's tokens are.
struct RowPlaces {
  at::Tensor positions;    // [rows, tokens] int64
  at::Tensor slots;        // [rows] int64, padded rows at slot 0; undefined for the identity
  at::Tensor mixer_slots;  // [rows] int32, padded rows below 0; undefined for the identity
  at::Tensor present;      // int64: the rows that are not padded; undefined where none is
};

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
  bool padded() const { return padded_; }      // some row has no slot
  bool identity() const { return identity_; }  // row b is slot b, and there are no other slots
  const std::vector<std::int32_t>& slots() const { return slots_; }

  // Made at a call's first use on each device, for all of its layers; not for several threads at once. Rows that stand
  // at one position in slots of their own need no copy to the device.
  const RowPlaces& places(std::int64_t tokens, const at::Device& device) const;
  // `places` is what places() answers there: memory that others keep up to date.
  void place(std::int64_t tokens, const at::Device& device, RowPlaces places);

 private:
  struct Placed {
    at::Device device;
    std::int64_t tokens;
    RowPlaces places;
  };

  void look_at_positions();
  RowPlaces make_places(std::int64_t tokens, const at::Device& device) const;

  std::vector<std::int32_t> slots_;
  std::vector<std::int64_t> positions_;
  std::int64_t longest_ = 0;
  bool aligned_ = true, identity_ = true, padded_ = false;
  mutable std::list<Placed> placed_;  // a list: references to its elements stay
};

}  // namespace replayeval
