#include "kernels/bench/mixer_part_bench.h"

#include "kernels/bench/output_check.h"

#include <fmt/format.h>

#include <iostream>
#include <stdexcept>

namespace replayeval::bench {
namespace {

double checked_error(MixerPart& part, const std::string& name, const MixerPartSizes& sizes) {
  const double error = part.output_error();
  if (error <= kMostOutputError) return error;
  throw std::runtime_error(
      fmt::format("{} of {} sequences of {} tokens is off by {:.2g} (relative Frobenius error against the CPU kernels; "
                  "at most {:g} is right, and a state must be the same)",
                  name, sizes.batch, sizes.tokens, error, kMostOutputError));
}

nlohmann::json bench_sizes(BenchDevice& device, double read_bandwidth, const MixerPartOptions& options,
                           const MixerPartSizes& sizes) {
  const std::unique_ptr<MixerPart> part =
      options.part == "conv" ? make_conv_part(device, sizes) : make_gated_norm_part(device, sizes);
  const double error = checked_error(*part, options.part, sizes);
  Timing timing = device.time(
      [&] {
        for (std::size_t copy = 0; copy < part->copies(); ++copy) part->run(copy);
      },
      options.repeats);
  for (double* microseconds : {&timing.median, &timing.min, &timing.max})
    *microseconds /= static_cast<double>(part->copies());
  const double per_second = part->bytes() / timing.median * 1e6;
  std::cout << fmt::format("{:5} {:6} {:30} {:6.3f} {:3.0f}%  {:9.2g}\n", sizes.batch, sizes.tokens,
                           fmt::format("{:9.2f} [{:.2f}, {:.2f}]", timing.median, timing.min, timing.max),
                           per_second / 1e12, 100.0 * per_second / read_bandwidth, error)
            << std::flush;
  return {{"batch", sizes.batch}, {"tokens", sizes.tokens}, {"microseconds", timing.median}, {"min", timing.min},
          {"max", timing.max},    {"bytes", part->bytes()}, {"output_error", error}};
}

}  // namespace

nlohmann::json bench_mixer_part(BenchDevice& device, double read_bandwidth, const MixerPartOptions& options) {
  const MixerWidths& w = options.widths;
  std::cout << (options.part == "conv"
                    ? fmt::format("conv: {} of {} channels, 4 taps, bfloat16\n", w.channels, w.projection)
                    : fmt::format("gated norm: groups of {} in {}, bfloat16\n", w.group, w.inner));
  std::cout << fmt::format("{:>5} {:>6} {:30} {:>11}  {:>9}\n", "batch", "tokens", "us [min, max]", "TB/s share",
                           "error");
  nlohmann::json rows = nlohmann::json::array();
  for (const std::int64_t batch : options.batches) {
    rows.push_back(bench_sizes(device, read_bandwidth, options, {w, batch, options.tokens}));
    device.release();
  }
  return rows;
}

}  // namespace replayeval::bench
