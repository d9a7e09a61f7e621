// Random numbers that are the same on every platform: SplitMix64 (Steele, Lea & Flood 2014), as recall_documents.py has
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace replayeval::datasets::recall {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  std::size_t below(std::size_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::size_t>((static_cast<Wide>(next()) * n) >> 64U);
  }
  double unit() { return static_cast<double>(next() >> 11U) / 9007199254740992.0; }  // [0, 1), of 53 bits
  template <typename Items>
  const auto& choice(const Items& items) {
    return items[below(std::size(items))];
  }
  template <typename Item>
  void shuffle(std::vector<Item>& items) {
    for (std::size_t i = items.size(); i-- > 1;) std::swap(items[i], items[below(i + 1)]);
  }

  // Turns to another stream: what follows depends on all that was mixed in, in order.
  void mix(std::uint64_t value) { state_ = next() ^ value; }
  void mix(std::string_view text) {
    mix(text.size());
    for (const char c : text) mix(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }

 private:
  std::uint64_t state_;
};

}  // namespace replayeval::datasets::recall
