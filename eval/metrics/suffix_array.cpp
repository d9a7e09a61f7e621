#include "eval/metrics/suffix_array.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace replayeval::metrics {
namespace {

using Indices = std::vector<std::int32_t>;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// Places 0, 1, … of the tokens' values in order.
Indices ranks_of(std::span<const std::int32_t> tokens) {
  Indices values(tokens.begin(), tokens.end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  Indices ranks;
  for (const std::int32_t token : tokens)
    ranks.push_back(static_cast<std::int32_t>(std::lower_bound(values.begin(), values.end(), token) - values.begin()));
  return ranks;
}

// `candidates` sorted by rank, keeping the order of equal ones.
void counting_sort(const Indices& candidates, const Indices& ranks, Indices& sorted, Indices& begin) {
  begin.assign(ranks.size() + 1, 0);
  for (const std::int32_t rank : ranks) ++begin[at(rank) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  for (const std::int32_t suffix : candidates) sorted[at(begin[at(ranks[at(suffix)])]++)] = suffix;
}

// By the second half: suffixes that have none come first, then those `half` before each in the present order.
void order_by_second_half(const Indices& order, std::int32_t half, Indices& candidates) {
  const auto n = static_cast<std::int32_t>(order.size());
  candidates.clear();
  for (std::int32_t suffix = n - half; suffix < n; ++suffix) candidates.push_back(suffix);
  for (const std::int32_t suffix : order)
    if (suffix >= half) candidates.push_back(suffix - half);
}

// Ranks by 2 · half tokens from those by half; the number of different ones.
std::int32_t double_ranks(const Indices& order, std::int32_t half, const Indices& ranks, Indices& doubled) {
  const auto n = static_cast<std::int32_t>(order.size());
  const auto second = [&](std::int32_t suffix) { return suffix + half < n ? ranks[at(suffix + half)] : -1; };
  std::int32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && (ranks[at(order[i])] != ranks[at(order[i - 1])] || second(order[i]) != second(order[i - 1]))) ++rank;
    doubled[at(order[i])] = rank;
  }
  return rank + 1;
}

Indices shared_prefixes(std::span<const std::int32_t> tokens, const Indices& order, const Indices& place) {
  Indices common(tokens.size(), 0);
  std::size_t shared = 0;
  for (std::size_t suffix = 0; suffix < tokens.size(); ++suffix) {
    if (place[suffix] == 0) {
      shared = 0;
      continue;
    }
    const std::size_t other = at(order[at(place[suffix] - 1)]);
    while (std::max(suffix, other) + shared < tokens.size() && tokens[suffix + shared] == tokens[other + shared])
      ++shared;
    common[at(place[suffix])] = static_cast<std::int32_t>(shared);
    if (shared > 0) --shared;
  }
  return common;
}

}  // namespace

SuffixArray suffix_array(std::span<const std::int32_t> tokens) {
  SuffixArray result;
  const auto n = static_cast<std::int32_t>(tokens.size());
  if (n == 0) return result;
  Indices ranks = ranks_of(tokens), doubled(tokens.size()), candidates(tokens.size()), begin;
  result.order.resize(tokens.size());
  std::iota(candidates.begin(), candidates.end(), 0);
  counting_sort(candidates, ranks, result.order, begin);
  for (std::int32_t half = 1; half < n; half *= 2) {
    order_by_second_half(result.order, half, candidates);
    counting_sort(candidates, ranks, result.order, begin);
    const std::int32_t different = double_ranks(result.order, half, ranks, doubled);
    ranks.swap(doubled);
    if (different == n) break;
  }
  Indices place(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) place[at(result.order[i])] = static_cast<std::int32_t>(i);
  result.common = shared_prefixes(tokens, result.order, place);
  return result;
}

}  // namespace replayeval::metrics
