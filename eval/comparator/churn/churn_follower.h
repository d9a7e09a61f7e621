// Follows a churn script with a cache and compares what comes out with an undisturbed run: what following a model and a
// single mixer have in common.
#pragma once

#include <memory>
#include <vector>

#include "eval/comparator/churn/churn_script.h"
#include "eval/comparator/churn/churn_tally.h"
#include "eval/comparator/churn/saved_prefixes.h"
#include "eval/model/model.h"

namespace replayeval {

class ChurnFollower {
 public:
  virtual ~ChurnFollower() = default;
  // Throws Interrupted when asked to stop, std::runtime_error on outputs that are not finite.
  void follow(const ChurnScript& script, ChurnTally& tally);
  std::int64_t decoded_tokens() const { return decoded_; }  // per arm, so far, undisturbed runs apart

 protected:
  // What happened to a sequence since it came into its slot.
  struct Stay {
    std::int64_t begin = 0;           // its first token that was decoded there
    std::vector<TokenStory> stories;  // of that one and those after it
  };

  virtual std::unique_ptr<DecodeCache> make_cache(std::int64_t slots) const = 0;
  virtual void begin(std::int64_t slots) = 0;  // outputs of so many slots are going to be kept
  virtual void prefill(const ChurnRow& row, std::int64_t tokens, DecodeCache& cache) = 0;
  virtual void decode(const ChurnAction& call, DecodeCache& cache) = 0;
  // The row's sequence leaves with `tokens` tokens: compares the outputs of its stay.
  virtual void check(const ChurnRow& row, const Stay& stay, std::int64_t tokens, DecodeCache& cache,
                     ChurnTally& tally) = 0;

 private:
  void note(const ChurnAction& call);

  std::vector<Stay> stays_;  // by slot
  std::int64_t decoded_ = 0;
};

}  // namespace replayeval
