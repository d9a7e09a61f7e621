#include "kernels/bench/mamba2_case.h"

namespace replayeval::bench {
namespace {

class Mamba2Case : public DecodeCase {
 public:
  Mamba2Case(BenchDevice& device, const ReplayOptions& options, const mamba2::Shape& shape, std::int64_t batch,
             const Part& part, Dtype state)
      : DecodeCase(device, options, batch, part, state, shape.num_heads * shape.head_dim * shape.state_size),
        shape_(shape),
        x_width_(shape.num_heads * shape.head_dim),
        B_width_(shape.num_groups * shape.state_size) {
    for (std::size_t i = 0; i < copies(); ++i) {
      rings_.push_back({normal(options.buffer_len * x_width_, options.ring),
                        normal(options.buffer_len * B_width_, options.ring),
                        zeros(shape.num_heads * options.buffer_len), nullptr});
    }
    in_ = {input(x_width_), input(B_width_), input(B_width_), input(shape.num_heads), x_width_,
           B_width_,        B_width_,        shape.num_heads, Dtype::bfloat16};
    out_ = make_output(x_width_, Dtype::bfloat16);
    parameters_ = {uniform(shape.num_heads, 2), uniform(shape.num_heads, 3), uniform(shape.num_heads, 4)};
  }

 private:
  void exact_step(const State& state) override {
    mamba2::exact(device_.device(), shape_, block_, in_, parameters_, state, out_);
  }
  void replay_step(const State& state, std::size_t copy, const std::int32_t* cursor) override {
    mamba2::Ring ring = rings_[copy];
    ring.cursor = cursor;
    const mamba2::ReplayForm form{options_.buffer_len, options_.route, options_.flush, options_.ring};
    mamba2::replay(device_.device(), shape_, form, block_, in_, parameters_, state, ring, out_);
  }
  double token_bytes() const override {  // x, B, C, dt in, y out
    return static_cast<double>(bytes_of(2 * x_width_ + 2 * B_width_ + shape_.num_heads, Dtype::bfloat16));
  }
  double entry_bytes() const override {
    return static_cast<double>(bytes_of(x_width_ + B_width_, options_.ring) +
                               bytes_of(shape_.num_heads, Dtype::float32));
  }

  mamba2::Shape shape_;
  std::int64_t x_width_, B_width_;
  std::vector<mamba2::Ring> rings_;
  mamba2::Inputs in_;
  mamba2::Parameters parameters_;
};

}  // namespace

std::unique_ptr<DecodeCase> make_mamba2_case(BenchDevice& device, const ReplayOptions& options,
                                             const mamba2::Shape& shape, std::int64_t batch, const Part& part,
                                             Dtype state) {
  return std::make_unique<Mamba2Case>(device, options, shape, batch, part, state);
}

}  // namespace replayeval::bench
