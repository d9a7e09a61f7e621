#include "eval/executors/delta_rule_gold.h"

#include "eval/executors/gold_tensors.h"

namespace replayeval {
namespace {

using Recurrence = std::variant<reference::GatedDeltaRecurrence, reference::KdaRecurrence>;

reference::DeltaShape shape_of(const delta_rule::Shape& shape) {
  return {shape.num_key_heads, shape.num_value_heads, shape.key_dim, shape.value_dim};
}

Recurrence recurrence_of(const DeltaRuleMixer& mixer) {
  const DeltaRuleWeights& weights = mixer.weights();
  if (mixer.family_kind() == delta_rule::Family::gated_delta) {
    reference::GatedDeltaParameters parameters;
    parameters.shape = shape_of(mixer.shape());
    parameters.A_log = vector_of(weights.A_log);
    parameters.dt_bias = vector_of(weights.dt_bias);
    parameters.allow_neg_eigval = weights.allow_neg_eigval;
    return reference::GatedDeltaRecurrence(std::move(parameters));
  }
  reference::KdaParameters parameters;
  parameters.shape = shape_of(mixer.shape());
  parameters.A_log = vector_of(weights.A_log);
  parameters.dt_bias =
      vector_of(weights.dt_bias).reshaped<Eigen::RowMajor>(mixer.shape().num_value_heads, mixer.shape().key_dim);
  parameters.bounded_gate = weights.gate == delta_rule::Gate::bounded;
  parameters.lower_bound = static_cast<double>(weights.lower_bound);
  parameters.allow_neg_eigval = weights.allow_neg_eigval;
  return reference::KdaRecurrence(std::move(parameters));
}

}  // namespace

DeltaRuleGold::DeltaRuleGold(const DeltaRuleMixer& mixer)
    : family_(mixer.family_kind()), shape_(mixer.shape()), recurrence_(recurrence_of(mixer)) {}

void DeltaRuleGold::decode(const at::Tensor& conv, const at::Tensor& projected) {
  const DeltaRuleWidths widths = delta_rule_widths(family_, shape_);
  const at::Tensor inputs = one_sequence(conv), all = one_sequence(projected);
  const std::int64_t b_begin = widths.q + widths.k + widths.v + widths.z;
  const Eigen::Index gates = delta_rule::gate_dim(family_, shape_);
  RowMajor y;
  for (std::int64_t t = 0; t < inputs.size(0); ++t) {
    const Eigen::MatrixXd q = part_of(inputs, t, 0, shape_.num_key_heads, shape_.key_dim);
    const Eigen::MatrixXd k = part_of(inputs, t, widths.q, shape_.num_key_heads, shape_.key_dim);
    const Eigen::MatrixXd v = part_of(inputs, t, widths.q + widths.k, shape_.num_value_heads, shape_.value_dim);
    const Eigen::VectorXd b = part_of(all, t, b_begin, 1, shape_.num_value_heads).transpose();
    const Eigen::MatrixXd f = part_of(all, t, b_begin + widths.b, shape_.num_value_heads, gates);
    if (auto* gated_delta = std::get_if<reference::GatedDeltaRecurrence>(&recurrence_))
      y = gated_delta->step(q, k, v, b, f.col(0));
    else
      y = std::get<reference::KdaRecurrence>(recurrence_).step(q, k, v, b, f);
  }
  y_.clear();
  append(y, y_);
}

std::vector<double> DeltaRuleGold::state() const {
  std::vector<double> values;
  for (std::int64_t head = 0; head < shape_.num_value_heads; ++head)
    append(std::visit([head](const auto& recurrence) -> const Eigen::MatrixXd& { return recurrence.state(head); },
                      recurrence_),
           values);
  return values;
}

}  // namespace replayeval
