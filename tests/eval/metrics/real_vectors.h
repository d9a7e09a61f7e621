// Populations of real results that tests draw comparisons from (data/README.md says where they are from).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "eval/metrics/degeneration.h"

namespace replayeval::metrics {

// A stretch of real text: sums over its tokens.
struct TextPiece {
  std::int64_t document = 0;
  double tokens = 0.0, log_prob = 0.0;  // of the baseline
  struct Arm {
    double delta = 0.0, kl = 0.0, delta_p = 0.0, same_top1 = 0.0;
  };
  std::array<Arm, 2> arms;  // exact-bf16, replay-bf16
};

// Contiguous pieces of some 64 tokens, `joined` of them as one (within documents; a shorter rest is left out).
std::vector<TextPiece> text_pieces(std::size_t joined);

// Right and wrong answers of the baseline to real questions.
std::vector<std::uint8_t> right_answers();

struct GeneratedPair {
  std::int64_t prompt = 0;
  Degeneration baseline, arm;
};
std::vector<GeneratedPair> generated_pairs();  // two sequences a prompt, those of one prompt adjacent

double uniform(std::mt19937_64& random);  // in [0, 1)

// Of `runs` trials each with probability `share`: no more than four standard errors above or below it are expected, in
// one test of some ten thousand.
double slack(double share, int runs);

}  // namespace replayeval::metrics
