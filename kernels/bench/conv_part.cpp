#include "kernels/bench/fill.h"
#include "kernels/bench/mixer_part.h"
#include "kernels/bench/output_check.h"

#include <limits>
#include <set>

namespace replayeval::bench {
namespace {

constexpr std::int64_t kTaps = 4;
using Stored = std::vector<std::uint16_t>;  // bfloat16

constexpr std::int64_t kSize = sizeof(std::uint16_t);  // of a bfloat16 element

class ConvPart : public MixerPart {
 public:
  ConvPart(BenchDevice& device, const MixerPartSizes& sizes) : device_(device), sizes_(sizes) {
    const MixerWidths& w = sizes.widths;
    const auto in_bytes = static_cast<std::size_t>(sizes.rows() * w.projection * kSize);
    const auto out_bytes = static_cast<std::size_t>(sizes.rows() * w.channels * kSize);
    const auto state_bytes = static_cast<std::size_t>(sizes.batch * w.channels * (kTaps - 1) * kSize);
    for (std::size_t i = 0; i < rotated_copies(static_cast<std::size_t>(bytes())); ++i) {
      void* in = device.allocate(in_bytes);
      fill_normal(device, in, in_bytes, Dtype::bfloat16);
      Conv conv;
      conv.channels = w.channels;
      conv.weight = make_uniform(device, w.channels * kTaps, 2);
      conv.bias = make_uniform(device, w.channels, 3);
      conv.in = static_cast<std::uint16_t*>(in) + w.conv_begin;
      conv.in_stride = w.projection;
      conv.out = device.allocate(out_bytes);
      conv.out_stride = w.channels;
      conv.state = device.allocate(state_bytes);
      conv.slots = sizes.batch;
      conv.dtype = Dtype::bfloat16;
      fill_normal(device, conv.state, state_bytes, Dtype::bfloat16);
      copies_.push_back(conv);
    }
  }

  std::size_t copies() const override { return copies_.size(); }
  void run(std::size_t copy) override {
    causal_conv(device_.device(), {sizes_.batch, sizes_.tokens, nullptr}, copies_[copy]);
  }
  double bytes() const override {
    const std::int64_t of_a_channel = kSize * (2 * sizes_.rows() + 2 * sizes_.batch * (kTaps - 1)) + 4 * (kTaps + 1);
    return static_cast<double>(sizes_.widths.channels * of_a_channel);
  }

  double output_error() override {
    const std::set<std::int64_t> sequences = {0, sizes_.batch / 2, sizes_.batch - 1};
    std::vector<Stored> states;
    for (const std::int64_t sequence : sequences) states.push_back(state_of(sequence));
    run(0);
    double worst = 0.0;
    std::size_t i = 0;
    for (const std::int64_t sequence : sequences) {
      const double error = error_of(sequence, states[i++]);
      if (!(error <= worst)) worst = error;
    }
    return worst;
  }

 private:
  Stored state_of(std::int64_t sequence) const {
    const std::int64_t elements = sizes_.widths.channels * (kTaps - 1);
    return download_values<std::uint16_t>(
        device_, static_cast<const std::uint16_t*>(copies_[0].state) + sequence * elements, elements);
  }

  double error_of(std::int64_t sequence, Stored& state) const {
    const std::int64_t channels = sizes_.widths.channels, tokens = sizes_.tokens;
    const std::int64_t in_stride = sizes_.widths.projection;
    const Stored in = download_values<std::uint16_t>(
        device_, static_cast<const std::uint16_t*>(copies_[0].in) + sequence * tokens * in_stride,
        (tokens - 1) * in_stride + channels);
    Stored out(static_cast<std::size_t>(tokens * channels));
    const std::vector<float> weight = download_values<float>(device_, copies_[0].weight, channels * kTaps);
    const std::vector<float> bias = download_values<float>(device_, copies_[0].bias, channels);
    Conv conv = copies_[0];
    conv.weight = weight.data();
    conv.bias = bias.data();
    conv.in = in.data();
    conv.out = out.data();
    conv.state = state.data();
    conv.slots = 1;
    causal_conv({}, {1, tokens, nullptr}, conv);
    if (state != state_of(sequence)) return std::numeric_limits<double>::quiet_NaN();
    return relative_error(widened(download_values<std::uint16_t>(
                              device_, static_cast<const std::uint16_t*>(copies_[0].out) + sequence * tokens * channels,
                              tokens * channels)),
                          widened(out));
  }

  BenchDevice& device_;
  MixerPartSizes sizes_;
  std::vector<Conv> copies_;
};

}  // namespace

std::unique_ptr<MixerPart> make_conv_part(BenchDevice& device, const MixerPartSizes& sizes) {
  return std::make_unique<ConvPart>(device, sizes);
}

}  // namespace replayeval::bench
