#include "kernels/bench/output_check.h"

#include <cmath>
#include <set>
#include <utility>

namespace replayeval::bench {

double relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / norm);
}

double output_error(DecodeCase& decode, std::int64_t batch, std::int64_t steps,
                    const std::function<std::unique_ptr<DecodeCase>(const Part&)>& make_on_cpu) {
  std::vector<std::pair<std::int64_t, std::unique_ptr<DecodeCase>>> alone;
  for (const std::int64_t sequence : std::set<std::int64_t>{0, batch / 2, batch - 1}) {
    alone.emplace_back(sequence, make_on_cpu({sequence, true}));
  }
  double worst = 0.0;
  const auto compare = [&] {
    if (std::isnan(worst)) return;
    for (const auto& [sequence, expected] : alone) {
      const double error = relative_error(decode.y(sequence), expected->y(0));
      if (std::isnan(error) || error > worst) worst = error;
      if (std::isnan(worst)) return;
    }
  };
  for (std::int64_t step = 0; step < steps; ++step) {
    decode.replay_step_of_first_copy(step);
    for (const auto& [sequence, expected] : alone) expected->replay_step_of_first_copy(step);
    compare();
  }
  decode.exact_step_of_first_copy();
  for (const auto& [sequence, expected] : alone) expected->exact_step_of_first_copy();
  compare();
  return worst;
}

}  // namespace replayeval::bench
