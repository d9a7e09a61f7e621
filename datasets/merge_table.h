// Which pairs of tokens merge: an open-addressing hash table, as a lookup is what encoding does most.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace replayeval::datasets {

struct Merge {
  std::uint32_t rank = 0;
  std::int32_t token = -1;  // what the pair becomes; -1: nothing
};

class MergeTable {
 public:
  explicit MergeTable(std::size_t count) : slots_(std::bit_ceil(count * 2 + 1)) {}

  // A pair that is set again takes the later merge. At most `count` pairs.
  void set(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[place_of(left, right)];
    slot = {.left = left, .right = right, .merge = merge};
  }
  Merge find(std::int32_t left, std::int32_t right) const { return slots_[place_of(left, right)].merge; }

 private:
  struct Slot {
    std::int32_t left = -1, right = -1;  // ids are >= 0: a free slot
    Merge merge;
  };

  // Of the pair, or of the free slot where it belongs.
  std::size_t place_of(std::int32_t left, std::int32_t right) const {
    const std::uint64_t pair =
        (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
    std::uint64_t hash = pair * 0x9E3779B97F4A7C15U;  // Fibonacci hashing; the high bits are the mixed ones
    hash ^= hash >> 32;
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = static_cast<std::size_t>(hash) & mask;
    while (slots_[place].left >= 0 && (slots_[place].left != left || slots_[place].right != right)) {
      place = (place + 1) & mask;
    }
    return place;
  }

  std::vector<Slot> slots_;
};

}  // namespace replayeval::datasets
