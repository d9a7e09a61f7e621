// What the comparison of an arm with the baseline says, in plain words.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "reports/results.h"
#include "reports/text_table.h"

namespace replayeval::reports {

enum class Change : std::uint8_t {
  identical,  // the same log-probabilities and logits, token for token; of generations the same tokens
  none,       // no interval is clear of zero
  worse,      // an interval lies beyond zero on the bad side
  better,     // or on the good one: a deviation all the same
  imprecise,  // none is clear of zero, and so wide that they say nothing
  unknown,    // no delta, or none with an interval
};

// A change of perplexity below this, relative to the baseline's, is called a trace.
inline constexpr double least_slight_change = 1e-4;

// Intervals that reach further to both sides than this say nothing of an arm: shares (of right answers, of looped
// sequences), and perplexities relative to the baseline's.
inline constexpr double widest_share = 0.05, widest_perplexity = 0.01;

struct Verdict {
  Change change = Change::unknown;
  // e.g. "no measurable change: ΔPPL +0.00001 % [-0.00002, +0.00004] (95 %)". How much is said by size of the delta:
  // below 0.01 % "a trace", below 0.1 % "slightly", below 1 % "noticeably", above "much".
  std::string text;
  double size = HUGE_VAL;  // of a perplexity's change, relative; of others, which have no common scale, unlimited
  double chance = 0.0;     // that an arm which differs by nothing but noise is called worse; 0: no interval decided

  bool trace() const { return size < least_slight_change; }
};

Verdict verdict(const Workload& workload, const std::string& arm);
// Of a delta whose interval holds zero: half of it is wider than `widest`.
bool says_nothing(const Delta& delta, double widest);
// That the interval of a delta which is zero lies beyond zero on the bad side.
double chance_of_worse(const Delta& delta);
// Good: no change. Bad: worse. Warning: a change all the same, to the better or a trace of one. Dim: nothing is known.
Tint tint_of(const Verdict& verdict);

}  // namespace replayeval::reports
