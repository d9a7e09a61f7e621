// Weights out of a seed, for work on speed and memory where no checkpoint is at hand. The numbers that such a model
// computes are finite and of ordinary size; they say nothing about quality.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace replayeval {

// Fills `weight` by what its name says it is:
//   ...A_log            log of 1 ... 16, evenly spaced over the heads
//   ...dt_bias          inverse softplus of a time step from 1e-3 to 1e-1, log-uniform
//   ...D, norm weights  1
//   biases              0
//   embeddings          normal, standard deviation 0.02
//   everything else     normal, standard deviation 1 / sqrt(fan-in), the fan-in being the last size
// Each tensor has its own stream of numbers, from `seed` and its name: neither order nor presence of others matters.
// The same seed gives the same weights on the same kind of device.
void fill_random(const at::Tensor& weight, const std::string& name, std::uint64_t seed);

}  // namespace replayeval
