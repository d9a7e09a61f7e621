// The float64 recurrence of a Mamba-2 mixer.
#pragma once

#include "eval/executors/gold_recurrence.h"
#include "eval/executors/mamba2_mixer.h"
#include "reference/mamba2.h"

namespace replayeval {

class Mamba2Gold final : public GoldRecurrence {
 public:
  explicit Mamba2Gold(const Mamba2Mixer& mixer);

  std::unique_ptr<GoldRecurrence> clone() const override { return std::make_unique<Mamba2Gold>(*this); }
  void decode(const at::Tensor& conv, const at::Tensor& projected) override;
  std::vector<double> state() const override;
  const std::vector<double>& last_output() const override { return y_; }

 private:
  mamba2::Shape shape_;
  reference::Mamba2Recurrence recurrence_;
  std::vector<double> y_;
};

}  // namespace replayeval
