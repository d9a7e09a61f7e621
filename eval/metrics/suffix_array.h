// Suffixes of a token sequence in order, and what neighbours share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace replayeval::metrics {

struct SuffixArray {
  std::vector<std::int32_t> order;   // [n] where the suffixes begin, in lexicographic order
  std::vector<std::int32_t> common;  // [n] tokens that suffix order[i] shares with order[i - 1]; common[0] = 0
};

// By prefix doubling with counting sorts (Manber & Myers 1993), O(n log n); common prefixes by Kasai et al. (2001),
// O(n).
SuffixArray suffix_array(std::span<const std::int32_t> tokens);

}  // namespace replayeval::metrics
