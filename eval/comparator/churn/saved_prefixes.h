// Sequences kept aside, as a server keeps the caches of prefixes, and the check that what comes back is what went.
#pragma once

#include <memory>
#include <vector>

#include "eval/comparator/churn/churn_tally.h"
#include "eval/model/model.h"

namespace replayeval {

class SavedPrefixes {
 public:
  explicit SavedPrefixes(std::unique_ptr<DecodeCache> places);

  void save(std::int64_t place, const DecodeCache& cache, std::int64_t slot);
  // Compares all that the slot then holds, tensor by tensor, with what it held when it was saved.
  void restore(std::int64_t slot, DecodeCache& cache, std::int64_t place, ChurnTally& tally) const;

 private:
  std::unique_ptr<DecodeCache> places_;
  std::vector<std::vector<HeldTensor>> held_;  // by place, on the CPU
};

}  // namespace replayeval
