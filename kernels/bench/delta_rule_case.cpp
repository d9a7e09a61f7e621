#include "kernels/bench/delta_rule_case.h"

namespace replayeval::bench {
namespace {

class DeltaRuleCase : public DecodeCase {
 public:
  DeltaRuleCase(BenchDevice& device, const ReplayOptions& options, delta_rule::Family family,
                delta_rule::RingForm ring_form, const delta_rule::Shape& shape, std::int64_t batch, const Part& part,
                Dtype state)
      : DecodeCase(device, options, batch, part, state, shape.num_value_heads * shape.value_dim * shape.key_dim),
        family_(family),
        ring_form_(ring_form),
        shape_(shape),
        k_width_(shape.num_key_heads * shape.key_dim),
        v_width_(shape.num_value_heads * shape.value_dim),
        f_width_(shape.num_value_heads * delta_rule::gate_dim(family, shape)) {
    for (std::size_t i = 0; i < copies(); ++i) {
      rings_.push_back({normal(options.buffer_len * v_width_, options.ring),
                        normal(options.buffer_len * k_width_, options.ring), zeros(options.buffer_len * f_width_),
                        zeros(options.buffer_len * shape.num_value_heads), nullptr});
    }
    in_ = {input(k_width_),       input(k_width_), input(v_width_), input(shape.num_value_heads),
           input(f_width_),       k_width_,        k_width_,        v_width_,
           shape.num_value_heads, f_width_,        Dtype::bfloat16};
    out_ = make_output(v_width_, Dtype::bfloat16);
    parameters_.A_log = uniform(shape.num_value_heads, 2);
    parameters_.dt_bias = uniform(f_width_, 3);
  }

 private:
  void exact_step(const State& state) override {
    delta_rule::exact(device_.device(), family_, shape_, block_, in_, parameters_, state, out_);
  }
  void replay_step(const State& state, std::size_t copy, const std::int32_t* cursor) override {
    delta_rule::Ring ring = rings_[copy];
    ring.cursor = cursor;
    const delta_rule::ReplayForm form{options_.buffer_len, ring_form_, options_.route, options_.flush, options_.ring};
    delta_rule::replay(device_.device(), family_, shape_, form, block_, in_, parameters_, state, ring, out_);
  }
  double token_bytes() const override {  // q, k, v, b, f in, y out
    return static_cast<double>(
        bytes_of(2 * k_width_ + 2 * v_width_ + shape_.num_value_heads + f_width_, Dtype::bfloat16));
  }
  double entry_bytes() const override {
    const std::int64_t betas = ring_form_ == delta_rule::RingForm::inputs ? shape_.num_value_heads : 0;
    return static_cast<double>(bytes_of(v_width_ + k_width_, options_.ring) +
                               bytes_of(f_width_ + betas, Dtype::float32));
  }

  delta_rule::Family family_;
  delta_rule::RingForm ring_form_;
  delta_rule::Shape shape_;
  std::int64_t k_width_, v_width_, f_width_;
  std::vector<delta_rule::Ring> rings_;
  delta_rule::Inputs in_;
  delta_rule::Parameters parameters_;
};

}  // namespace

std::unique_ptr<DecodeCase> make_delta_rule_case(BenchDevice& device, const ReplayOptions& options,
                                                 delta_rule::Family family, delta_rule::RingForm ring_form,
                                                 const delta_rule::Shape& shape, std::int64_t batch, const Part& part,
                                                 Dtype state) {
  return std::make_unique<DeltaRuleCase>(device, options, family, ring_form, shape, batch, part, state);
}

}  // namespace replayeval::bench
