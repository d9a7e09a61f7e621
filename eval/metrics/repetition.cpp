#include "eval/metrics/repetition.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "eval/metrics/suffix_array.h"

namespace replayeval::metrics {
namespace {

void check_length(std::size_t length) {
  if (length > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw std::invalid_argument("a sequence of " + std::to_string(length) + " tokens, expected fewer than 2^31");
}

// Calls group(first, last) for every run of suffixes order[first … last) that share `length` tokens.
template <typename Group>
void for_each_group(const SuffixArray& suffixes, std::int32_t length, Group group) {
  for (std::size_t first = 0; first < suffixes.order.size();) {
    std::size_t last = first + 1;
    while (last < suffixes.order.size() && suffixes.common[last] >= length) ++last;
    if (last - first > 1) group(first, last);
    first = last;
  }
}

bool repeats_apart(const SuffixArray& suffixes, std::int32_t length) {
  bool found = false;
  for_each_group(suffixes, length, [&](std::size_t first, std::size_t last) {
    if (found) return;
    const auto [low, high] = std::minmax_element(suffixes.order.begin() + static_cast<std::ptrdiff_t>(first),
                                                 suffixes.order.begin() + static_cast<std::ptrdiff_t>(last));
    found = *high - *low >= length;
  });
  return found;
}

RepeatedSpan best_of_length(const SuffixArray& suffixes, std::int32_t length) {
  RepeatedSpan best;
  for_each_group(suffixes, length, [&](std::size_t first, std::size_t last) {
    std::vector<std::int32_t> begins(suffixes.order.begin() + static_cast<std::ptrdiff_t>(first),
                                     suffixes.order.begin() + static_cast<std::ptrdiff_t>(last));
    std::sort(begins.begin(), begins.end());
    std::int64_t fit = 0, free_from = 0;
    for (const std::int32_t begin : begins) {
      if (begin < free_from) continue;
      ++fit;
      free_from = static_cast<std::int64_t>(begin) + length;
    }
    if (fit > std::max<std::int64_t>(1, best.occurrences) || (fit == best.occurrences && begins.front() < best.begin))
      best = {length, begins.front(), fit};
  });
  return best;
}

using Tokens = std::vector<std::int64_t>;  // wide, so that a separator equals no token
constexpr std::int64_t separator = std::numeric_limits<std::int64_t>::min();

// z[i]: how many tokens text[i …] shares with text.
std::vector<std::int64_t> z_function(const Tokens& text) {
  const auto n = static_cast<std::int64_t>(text.size());
  const auto token = [&](std::int64_t i) { return text[static_cast<std::size_t>(i)]; };
  std::vector<std::int64_t> z(text.size(), 0);
  for (std::int64_t i = 1, from = 0, to = 0; i < n; ++i) {
    std::int64_t shared = i < to ? std::min(to - i, z[static_cast<std::size_t>(i - from)]) : 0;
    while (i + shared < n && token(shared) == token(i + shared)) ++shared;
    z[static_cast<std::size_t>(i)] = shared;
    if (i + shared > to) {
      from = i;
      to = i + shared;
    }
  }
  return z;
}

class LoopSearch {
 public:
  LoopSearch(std::span<const std::int32_t> tokens, std::int64_t min_repeats)
      : tokens_(tokens), min_repeats_(min_repeats) {
    search(0, static_cast<std::int64_t>(tokens.size()));
  }
  const std::optional<Loop>& best() const { return best_; }

 private:
  // A loop that lies across the middle of [begin, end) has a whole period on one of its sides; the others are inside a
  // half.
  void search(std::int64_t begin, std::int64_t end) {
    if (end - begin < min_repeats_) return;
    const std::int64_t middle = begin + (end - begin) / 2;
    across(begin, middle, end);
    search(begin, middle);
    search(middle, end);
  }

  void across(std::int64_t begin, std::int64_t middle, std::int64_t end) {
    const std::int64_t left = middle - begin, right = end - middle;
    const Tokens u(tokens_.begin() + begin, tokens_.begin() + middle),
        v(tokens_.begin() + middle, tokens_.begin() + end);
    const Tokens u_reversed(u.rbegin(), u.rend()), v_reversed(v.rbegin(), v.rend());
    const std::vector<std::int64_t> after_left = z_function(joined(v, u)), before_left = z_function(u_reversed);
    const std::vector<std::int64_t> after_right = z_function(v),
                                    before_right = z_function(joined(u_reversed, v_reversed));
    const auto entry = [](const std::vector<std::int64_t>& z, std::int64_t i) {
      return i < static_cast<std::int64_t>(z.size()) ? z[static_cast<std::size_t>(i)] : 0;
    };
    for (std::int64_t period = 1; period <= left; ++period) {  // a period just before the middle
      const std::int64_t before = entry(before_left, period), after = entry(after_left, right + 1 + left - period);
      consider({middle - period - before, period + before + after, period});
    }
    for (std::int64_t period = 1; period <= right; ++period) {  // a period just after it
      const std::int64_t before = entry(before_right, left + 1 + right - period), after = entry(after_right, period);
      consider({middle - before, period + before + after, period});
    }
  }

  // head | separator | tail head: the Z function's entries behind the separator compare the tail, and what follows it,
  // with the head.
  static Tokens joined(const Tokens& head, const Tokens& tail) {
    Tokens text = head;
    text.push_back(separator);
    text.insert(text.end(), tail.begin(), tail.end());
    text.insert(text.end(), head.begin(), head.end());
    return text;
  }

  void consider(const Loop& loop) {
    if (loop.repeats() < min_repeats_) return;
    if (best_) {
      if (loop.length != best_->length ? loop.length < best_->length
                                       : std::pair(loop.period, loop.begin) >= std::pair(best_->period, best_->begin))
        return;
    }
    best_ = loop;
  }

  std::span<const std::int32_t> tokens_;
  std::int64_t min_repeats_;
  std::optional<Loop> best_;
};

}  // namespace

RepeatedSpan longest_repeated_span(std::span<const std::int32_t> tokens) {
  check_length(tokens.size());
  const SuffixArray suffixes = suffix_array(tokens);
  std::int32_t repeats = 0, too_long = static_cast<std::int32_t>(tokens.size() / 2) + 1;
  while (too_long - repeats > 1) {
    const std::int32_t middle = repeats + (too_long - repeats) / 2;
    (repeats_apart(suffixes, middle) ? repeats : too_long) = middle;
  }
  return repeats > 0 ? best_of_length(suffixes, repeats) : RepeatedSpan{};
}

std::optional<Loop> longest_loop(std::span<const std::int32_t> tokens, std::int64_t min_repeats) {
  check_length(tokens.size());
  if (min_repeats < 2)
    throw std::invalid_argument("min_repeats is " + std::to_string(min_repeats) + ", expected 2 or more");
  return LoopSearch(tokens, min_repeats).best();
}

double repeated_3grams(std::span<const std::int32_t> tokens) {
  if (tokens.size() < 3) return 0.0;
  std::vector<std::array<std::int32_t, 3>> grams;
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) grams.push_back({tokens[i], tokens[i + 1], tokens[i + 2]});
  const auto all = static_cast<double>(grams.size());
  std::sort(grams.begin(), grams.end());
  grams.erase(std::unique(grams.begin(), grams.end()), grams.end());
  return 1.0 - static_cast<double>(grams.size()) / all;
}

double compression_ratio(std::string_view text) {
  if (text.empty()) return 1.0;
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::vector<Bytef> compressed(size);
  const int status = compress2(compressed.data(), &size, reinterpret_cast<const Bytef*>(text.data()),
                               static_cast<uLong>(text.size()), 6);
  if (status != Z_OK) throw std::runtime_error("zlib: compress2 returned " + std::to_string(status));
  return static_cast<double>(text.size()) / static_cast<double>(size);
}

}  // namespace replayeval::metrics
