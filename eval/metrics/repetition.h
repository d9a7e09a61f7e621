// How a token sequence repeats itself. Sequences of up to 2^31 - 1 tokens; longer ones throw std::invalid_argument.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace replayeval::metrics {

// A span that occurs at least twice without overlapping itself.
struct RepeatedSpan {
  std::int64_t length = 0;       // tokens; 0: no token occurs twice
  std::int64_t begin = 0;        // of its first occurrence
  std::int64_t occurrences = 0;  // most that fit side by side
};

// The longest such span; of equally long ones the one with the most occurrences, then the first. O(n log n).
RepeatedSpan longest_repeated_span(std::span<const std::int32_t> tokens);

// A stretch in which every token equals the one `period` before it, so the same text over and over.
struct Loop {
  std::int64_t begin = 0, length = 0;  // of the whole stretch, tokens
  std::int64_t period = 0;

  std::int64_t repeats() const { return length / period; }
  std::int64_t end() const { return begin + length; }
};

// The longest stretch with at least `min_repeats` (>= 2) whole periods; of equally long ones that with the shortest
// period, then the first. Nothing if there is none. By divide and conquer (Main & Lorentz 1984), O(n log n).
std::optional<Loop> longest_loop(std::span<const std::int32_t> tokens, std::int64_t min_repeats);

// Share of 3-grams that occurred before in the sequence: 1 - different / all. 0 below three tokens.
double repeated_3grams(std::span<const std::int32_t> tokens);

// Bytes over bytes after zlib (level 6): 2 to 3 for prose of some length, far more for loops; below 1 for a few bytes.
// 1 for no bytes.
double compression_ratio(std::string_view text);

}  // namespace replayeval::metrics
