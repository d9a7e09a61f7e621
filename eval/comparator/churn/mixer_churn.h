// One mixer under every arm through a churn script, given equal inputs: outputs and states are to be those of the
// sequence by itself, to the bit.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "eval/comparator/churn/churn_follower.h"
#include "eval/executors/mixer.h"

namespace replayeval {

class MixerChurn : public ChurnFollower {
 public:
  // inputs: [sequences, tokens, mixer.sizes().projection] on the mixer's device; a sequence's `lengths` tokens of them
  // are decoded. Prompts are computed in blocks of `block` tokens.
  MixerChurn(std::shared_ptr<const Mixer> mixer, std::vector<Arm> arms, at::Tensor inputs,
             std::vector<std::int64_t> lengths, std::int64_t block);

 private:
  struct Undisturbed {
    std::vector<at::Tensor> outputs;  // by arm: [tokens, 2 * inner], y and what goes to the output projection
    std::vector<at::Tensor> states;   // by arm, at the sequence's end
  };

  std::unique_ptr<DecodeCache> make_cache(std::int64_t slots) const override;
  void begin(std::int64_t slots) override;
  void prefill(const ChurnRow& row, std::int64_t tokens, DecodeCache& cache) override;
  void decode(const ChurnAction& call, DecodeCache& cache) override;
  void check(const ChurnRow& row, const Stay& stay, std::int64_t tokens, DecodeCache& cache,
             ChurnTally& tally) override;

  at::Tensor inputs_of(const ChurnAction& call) const;
  const Undisturbed& undisturbed(std::int64_t sequence, std::int64_t prefilled);
  std::unique_ptr<DecodeCache> cache_of(std::vector<Arm> arms, std::int64_t slots) const;

  std::shared_ptr<const Mixer> mixer_;
  std::vector<Arm> arms_;
  at::Tensor inputs_;
  std::vector<std::int64_t> lengths_;
  std::int64_t block_;
  std::unique_ptr<DecodeCache> prompts_;
  std::vector<at::Tensor> outputs_;  // by arm: [slots, tokens, 2 * inner]
  std::map<std::pair<std::int64_t, std::int64_t>, Undisturbed> undisturbed_;
};

}  // namespace replayeval
