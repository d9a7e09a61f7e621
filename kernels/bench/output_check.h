// Whether a timed case computes the right thing.
#pragma once

#include "kernels/bench/decode_case.h"

#include <functional>
#include <memory>
#include <vector>

namespace replayeval::bench {

// What bfloat16 outputs and a ring that rounds the last bit the other way may differ by; a wrong kernel is off by about
// 1.
inline constexpr double kMostOutputError = 5e-3;

// Frobenius norm of the difference over that of `expected`; of equal sizes.
double relative_error(const std::vector<float>& found, const std::vector<float>& expected);

// Steps the first copy of `decode` through a ring cycle and an exact step, and beside it its first, middle and last
// sequences on the CPU, whose kernels the tests hold against the float64 reference. Returns the largest relative error
// (Frobenius norm) of a step's y of a sequence; not a number where y is not.
double output_error(DecodeCase& decode, std::int64_t batch, std::int64_t steps,
                    const std::function<std::unique_ptr<DecodeCase>(const Part&)>& make_on_cpu);

}  // namespace replayeval::bench
