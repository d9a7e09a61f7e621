#include "eval/comparator/churn/saved_prefixes.h"

#include <ATen/ATen.h>

#include <utility>

namespace replayeval {

SavedPrefixes::SavedPrefixes(std::unique_ptr<DecodeCache> places)
    : places_(std::move(places)), held_(static_cast<std::size_t>(places_->slots())) {}

void SavedPrefixes::save(std::int64_t place, const DecodeCache& cache, std::int64_t slot) {
  places_->copy_slot(place, cache, slot);
  std::vector<HeldTensor> held = cache.held(slot);
  for (HeldTensor& tensor : held) tensor.value = tensor.value.cpu();
  held_[static_cast<std::size_t>(place)] = std::move(held);
}

void SavedPrefixes::restore(std::int64_t slot, DecodeCache& cache, std::int64_t place, ChurnTally& tally) const {
  cache.copy_slot(slot, *places_, place);
  const std::vector<HeldTensor>& expected = held_[static_cast<std::size_t>(place)];
  const std::vector<HeldTensor> found = cache.held(slot);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TokenDifferences differences =
        compare_tokens(found[i].value.cpu().reshape({1, -1}), expected[i].value.reshape({1, -1}));
    tally.add(ChurnLevel::prefix, expected[i].arm, ChurnKind::restore, differences.differing[0],
              differences.deviation[0]);
  }
}

}  // namespace replayeval
