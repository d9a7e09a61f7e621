#include "eval/comparator/storage_totals.h"

namespace replayeval {
namespace {

// Calls combine(into, from) for each pair of counts.
template <typename Combine>
void for_each_count(StorageTotals& totals, const StorageTotals& other, Combine combine) {
  for (std::size_t arm = 0; arm < totals.size(); ++arm) {
    for (std::size_t mixer = 0; mixer < totals[arm].size(); ++mixer) {
      StorageCounts& into = totals[arm][mixer];
      const StorageCounts& from = other.at(arm).at(mixer);
      combine(into.saturated, from.saturated);
      combine(into.subnormal, from.subnormal);
      combine(into.non_finite, from.non_finite);
    }
  }
}

}  // namespace

StorageTotals counts_of(const DecodeCache& cache) {
  StorageTotals counts;
  for (std::size_t arm = 0; arm < cache.arms().size(); ++arm) counts.push_back(cache.storage_counts(arm));
  return counts;
}

void add_counts(StorageTotals& totals, const StorageTotals& more) {
  totals.resize(more.size());
  StorageTotals same_shape = more;
  for (std::size_t arm = 0; arm < more.size(); ++arm) {
    if (totals[arm].empty()) totals[arm].resize(more[arm].size());
    if (more[arm].empty()) same_shape[arm].resize(totals[arm].size());
  }
  for_each_count(totals, same_shape, [](auto& into, auto from) { into += from; });
}

StorageTotals counts_since(StorageTotals now, const StorageTotals& before) {
  for_each_count(now, before, [](auto& into, auto from) { into -= from; });
  return now;
}

}  // namespace replayeval
