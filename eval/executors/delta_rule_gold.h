// The float64 recurrence of a delta-rule mixer.
#pragma once

#include <variant>

#include "eval/executors/delta_rule_mixer.h"
#include "eval/executors/gold_recurrence.h"
#include "reference/gated_delta.h"
#include "reference/kda.h"

namespace replayeval {

class DeltaRuleGold final : public GoldRecurrence {
 public:
  explicit DeltaRuleGold(const DeltaRuleMixer& mixer);

  std::unique_ptr<GoldRecurrence> clone() const override { return std::make_unique<DeltaRuleGold>(*this); }
  // b, f and the norms of q and k are never rounded here, whatever the mixer's numerics.
  void decode(const at::Tensor& conv, const at::Tensor& projected) override;
  std::vector<double> state() const override;
  const std::vector<double>& last_output() const override { return y_; }

 private:
  delta_rule::Family family_;
  delta_rule::Shape shape_;
  std::variant<reference::GatedDeltaRecurrence, reference::KdaRecurrence> recurrence_;
  std::vector<double> y_;
};

}  // namespace replayeval
