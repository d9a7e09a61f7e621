#include "datasets/tasks/python_random.h"

#include <algorithm>
#include <array>

namespace replayeval::tasks {
namespace {

// Hands a ready state to std::mt19937, which asks a seed sequence for exactly its words.
class ReadyState {
 public:
  using result_type = std::uint32_t;
  static constexpr std::size_t size = 624;

  // init_by_array of the reference implementation, with a key of one word.
  explicit ReadyState(std::uint32_t key) {
    words_[0] = 19650218U;
    for (std::uint32_t i = 1; i < size; ++i) words_[i] = 1812433253U * folded(i) + i;
    std::size_t i = 1;
    const auto step = [&](std::uint32_t factor, std::uint32_t plus) {
      words_[i] = (words_[i] ^ (folded(i) * factor)) + plus;
      if (++i == size) {
        words_[0] = words_[size - 1];
        i = 1;
      }
    };
    for (std::size_t k = 0; k < size; ++k) step(1664525U, key);
    for (std::size_t k = 1; k < size; ++k) step(1566083941U, 0U - static_cast<std::uint32_t>(i));
    words_[0] = 0x80000000U;
  }

  template <typename Iterator>
  void generate(Iterator begin, Iterator end) const {
    std::copy_n(words_.begin(), end - begin, begin);
  }

 private:
  std::uint32_t folded(std::size_t i) const { return words_[i - 1] ^ (words_[i - 1] >> 30); }
  std::array<std::uint32_t, size> words_{};
};

std::mt19937 seeded(std::uint32_t seed) {
  ReadyState state(seed);
  return std::mt19937(state);
}

}  // namespace

PythonRandom::PythonRandom(std::uint32_t seed) : twister_(seeded(seed)) {}

double PythonRandom::random() {
  const std::uint32_t high = static_cast<std::uint32_t>(twister_()) >> 5;
  const std::uint32_t low = static_cast<std::uint32_t>(twister_()) >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

}  // namespace replayeval::tasks
