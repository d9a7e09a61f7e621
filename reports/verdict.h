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
  better,     // or on the good one
  unknown,    // no delta, or none with an interval
};

struct Verdict {
  Change change = Change::unknown;
  // e.g. "no measurable change: ΔPPL +0.00001 % [-0.00002, +0.00004] (95 %)". How much is said by size of the delta:
  // below 0.01 % "a trace", below 0.1 % "slightly", below 1 % "noticeably", above "much".
  std::string text;
  double size = HUGE_VAL;  // of a perplexity's change, relative; of others, which have no common scale, unlimited

  bool trace() const { return size < 1e-4; }
};

Verdict verdict(const Workload& workload, const std::string& arm);
Tint tint_of(Change change);

}  // namespace replayeval::reports
