#include "eval/metrics/agreement.h"

#include <algorithm>
#include <vector>

namespace replayeval::metrics {
namespace {

using Tokens = std::span<const std::int32_t>;

std::size_t common_prefix(Tokens one, Tokens other) {
  const auto [differs, _] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  return static_cast<std::size_t>(differs - one.begin());
}

std::size_t common_suffix(Tokens one, Tokens other) {
  const auto [differs, _] = std::mismatch(one.rbegin(), one.rend(), other.rbegin(), other.rend());
  return static_cast<std::size_t>(differs - one.rbegin());
}

// Vertical differences of 64 rows of one column, one bit a row: where the distance grows by one, and where it falls.
struct Column {
  std::uint64_t grows = ~std::uint64_t{0}, falls = 0;

  // Moves on by one column. `equal`: rows whose token equals the column's. `in`: horizontal difference of the row above
  // the block. Returns that of the row with bit `last`.
  int advance(std::uint64_t equal, int in, std::uint64_t last) {
    const std::uint64_t vertical = equal | falls;
    if (in < 0) equal |= 1;
    const std::uint64_t horizontal = (((equal & grows) + grows) ^ grows) | equal;
    std::uint64_t right_grows = falls | ~(horizontal | grows), right_falls = grows & horizontal;
    const int out = (right_grows & last) != 0 ? 1 : (right_falls & last) != 0 ? -1 : 0;
    right_grows = (right_grows << 1U) | (in > 0 ? 1U : 0U);
    right_falls = (right_falls << 1U) | (in < 0 ? 1U : 0U);
    grows = right_falls | ~(vertical | right_grows);
    falls = right_grows & vertical;
    return out;
  }
};

// The columns' tokens as 0 … k - 1, and the rows' tokens as the same or k where no column has them.
struct Alphabet {
  std::vector<std::int32_t> values;

  explicit Alphabet(Tokens columns) : values(columns.begin(), columns.end()) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  std::vector<std::size_t> places(Tokens tokens) const {
    std::vector<std::size_t> result;
    for (const std::int32_t token : tokens) {
      const auto found = std::lower_bound(values.begin(), values.end(), token);
      result.push_back(found != values.end() && *found == token ? static_cast<std::size_t>(found - values.begin())
                                                                : values.size());
    }
    return result;
  }
};

std::int64_t bit_parallel_distance(Tokens rows, Tokens columns) {
  const Alphabet alphabet(columns);
  const std::vector<std::size_t> row = alphabet.places(rows), column = alphabet.places(columns);
  std::vector<std::uint64_t> equal(alphabet.values.size() + 1, 0);
  std::vector<std::int8_t> across(columns.size(), 1);  // horizontal differences of the row above: D[0][j] = j
  for (std::size_t begin = 0; begin < row.size(); begin += 64) {
    const std::size_t end = std::min(begin + 64, row.size());
    for (std::size_t i = begin; i < end; ++i) equal[row[i]] |= std::uint64_t{1} << (i - begin);
    const std::uint64_t last = std::uint64_t{1} << (end - begin - 1);
    Column state;
    for (std::size_t j = 0; j < column.size(); ++j)
      across[j] = static_cast<std::int8_t>(state.advance(equal[column[j]], across[j], last));
    for (std::size_t i = begin; i < end; ++i) equal[row[i]] = 0;
  }
  auto distance = static_cast<std::int64_t>(rows.size());
  for (const std::int8_t step : across) distance += step;
  return distance;
}

}  // namespace

std::int64_t edit_distance(Tokens one, Tokens other) {
  const std::size_t before = common_prefix(one, other);
  one = one.subspan(before);
  other = other.subspan(before);
  const std::size_t after = common_suffix(one, other);
  one = one.first(one.size() - after);
  other = other.first(other.size() - after);
  return one.size() < other.size() ? bit_parallel_distance(other, one) : bit_parallel_distance(one, other);
}

Agreement agreement(Tokens one, Tokens other) {
  Agreement result;
  result.longer = static_cast<std::int64_t>(std::max(one.size(), other.size()));
  const std::size_t shared = common_prefix(one, other);
  if (shared == one.size() && shared == other.size()) return result;
  result.first_divergence = static_cast<std::int64_t>(shared);
  result.edit_distance = edit_distance(one, other);
  return result;
}

}  // namespace replayeval::metrics
