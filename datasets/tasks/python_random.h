// random.Random of CPython: the Mersenne Twister (Matsumoto and Nishimura 1998), seeded with a whole number.
#pragma once

#include <cstdint>
#include <random>

namespace replayeval::tasks {

class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed);
  double random();  // in [0, 1), 53 bits

 private:
  std::mt19937 twister_;
};

}  // namespace replayeval::tasks
