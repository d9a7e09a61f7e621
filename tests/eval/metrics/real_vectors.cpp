#include "tests/eval/metrics/real_vectors.h"

#include <cmath>
#include <stdexcept>

#include "eval/npy.h"

namespace replayeval::metrics {
namespace {

DoubleArray load(const std::string& name, std::int64_t columns) {
  DoubleArray array = read_npy_double("tests/eval/metrics/data/" + name);
  if (array.shape.size() != 2 || array.shape[1] != columns) throw std::runtime_error(name + ": has other columns");
  return array;
}

TextPiece piece_of(const double* row) {
  TextPiece piece{static_cast<std::int64_t>(row[0]), row[1], row[2], {}};
  for (std::size_t arm = 0; arm < 2; ++arm) {
    const double* own = row + 3 + 4 * arm;
    piece.arms[arm] = {own[0], own[1], own[2], own[3]};
  }
  return piece;
}

void add(TextPiece& sum, const TextPiece& more) {
  sum.tokens += more.tokens;
  sum.log_prob += more.log_prob;
  for (std::size_t arm = 0; arm < 2; ++arm) {
    sum.arms[arm].delta += more.arms[arm].delta;
    sum.arms[arm].kl += more.arms[arm].kl;
    sum.arms[arm].delta_p += more.arms[arm].delta_p;
    sum.arms[arm].same_top1 += more.arms[arm].same_top1;
  }
}

Degeneration signs_of(const double* row) {
  Degeneration signs;
  signs.length = static_cast<std::int64_t>(row[0]);
  signs.truncated = row[1] != 0.0;
  signs.repeated.length = static_cast<std::int64_t>(row[2]);
  signs.repeated_3grams = row[3];
  signs.compression_ratio = row[4];
  return signs;
}

}  // namespace

std::vector<TextPiece> text_pieces(std::size_t joined) {
  constexpr std::size_t columns = 11;
  const DoubleArray array = load("heldout_pieces.npy", columns);
  std::vector<TextPiece> pieces;
  TextPiece sum;
  std::size_t in_sum = 0;
  for (std::size_t i = 0; i < array.values.size(); i += columns) {
    const TextPiece piece = piece_of(&array.values[i]);
    if (in_sum > 0 && piece.document != sum.document) in_sum = 0;
    if (in_sum == 0)
      sum = piece;
    else
      add(sum, piece);
    if (++in_sum < joined) continue;
    pieces.push_back(sum);
    in_sum = 0;
  }
  return pieces;
}

std::vector<std::uint8_t> right_answers() {
  const DoubleArray array = load("answers.npy", 2);
  std::vector<std::uint8_t> right;
  for (std::size_t i = 1; i < array.values.size(); i += 2) right.push_back(array.values[i] != 0.0 ? 1 : 0);
  return right;
}

std::vector<GeneratedPair> generated_pairs() {
  constexpr std::size_t columns = 11;
  const DoubleArray array = load("generated.npy", columns);
  std::vector<GeneratedPair> pairs;
  for (std::size_t i = 0; i < array.values.size(); i += columns) {
    const double* row = &array.values[i];
    pairs.push_back({static_cast<std::int64_t>(row[0]), signs_of(row + 1), signs_of(row + 6)});
  }
  return pairs;
}

double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11U) * 0x1p-53; }

double slack(double share, int runs) { return 4.0 * std::sqrt(share * (1.0 - share) / runs); }

}  // namespace replayeval::metrics
