// How far two token sequences agree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace replayeval::metrics {

struct Agreement {
  // The first place where they differ, counted from 0; where one is the beginning of the other, its length. Nothing if
  // they are identical.
  std::optional<std::int64_t> first_divergence;
  std::int64_t edit_distance = 0;
  std::int64_t longer = 0;  // tokens of the longer one

  bool identical() const { return !first_divergence; }
  double edit_share() const {
    return longer == 0 ? 0.0 : static_cast<double>(edit_distance) / static_cast<double>(longer);
  }
};

Agreement agreement(std::span<const std::int32_t> one, std::span<const std::int32_t> other);

// Insertions, deletions and replacements of single tokens that turn one into the other (Levenshtein). What both begin
// and end with is left out; the rest takes 64 rows at a time as bits (Myers 1999, in Hyyrö's 2003 form), a block of
// rows after the other: time m n / 64, memory linear in the shorter one.
std::int64_t edit_distance(std::span<const std::int32_t> one, std::span<const std::int32_t> other);

}  // namespace replayeval::metrics
