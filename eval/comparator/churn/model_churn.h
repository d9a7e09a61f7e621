// A whole model under all arms through a churn script, its tokens forced: log-probabilities against those of each
// sequence by itself.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "eval/comparator/churn/churn_follower.h"

namespace replayeval {

class ModelChurn : public ChurnFollower {
 public:
  // `model` outlives this. ids: [sequences, tokens + 1] int64 on the CPU; sequence s decodes its first lengths[s]
  // tokens and predicts the one after each. Prompts are computed in blocks of `block` tokens.
  ModelChurn(const Model& model, std::vector<Arm> arms, at::Tensor ids, std::vector<std::int64_t> lengths,
             std::int64_t block, std::int64_t page_length);

  // A script without events: how far the outputs of its sequences are from the sequences by themselves.
  // calm_deviations: of an arm, by slots, the largest one of each sequence in the calm scripts so far.
  void follow_calm(const ChurnScript& script);
  const std::map<std::int64_t, std::vector<double>>& calm_deviations(std::size_t arm) const {
    return calm_deviations_[arm];
  }
  // Of each token, where sequences were decoded one at a time.
  const std::vector<double>& single_deviations(std::size_t arm) const { return single_deviations_[arm]; }

  std::int64_t most_page_bytes() const { return most_page_bytes_; }  // of keys and values that sequences held at once

 private:
  std::unique_ptr<DecodeCache> make_cache(std::int64_t slots) const override;
  void begin(std::int64_t slots) override;
  void prefill(const ChurnRow& row, std::int64_t tokens, DecodeCache& cache) override;
  void decode(const ChurnAction& call, DecodeCache& cache) override;
  void check(const ChurnRow& row, const Stay& stay, std::int64_t tokens, DecodeCache& cache,
             ChurnTally& tally) override;

  // [arms, rows, tokens] float64: of the tokens that come after ids, [rows, tokens].
  at::Tensor log_probs(const at::Tensor& hidden, const at::Tensor& next) const;
  at::Tensor undisturbed(std::int64_t sequence, std::int64_t prefilled);

  const Model& model_;
  std::vector<Arm> arms_;
  at::Tensor ids_;
  std::vector<std::int64_t> lengths_;
  std::int64_t block_, page_length_;
  std::unique_ptr<DecodeCache> prompts_, alone_;
  at::Tensor log_probs_;                                                      // [arms, slots, tokens]
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> undisturbed_;   // [arms, tokens]
  std::vector<std::map<std::int64_t, std::vector<double>>> calm_deviations_;  // by arm
  std::vector<std::vector<double>> single_deviations_;
  std::int64_t calm_slots_ = 0;  // of the calm script that is followed; 0: none is
  std::int64_t most_page_bytes_ = 0;
};

}  // namespace replayeval
