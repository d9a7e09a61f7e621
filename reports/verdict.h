// What a paired perplexity delta says, in plain words.
#pragma once

#include <cstdint>
#include <string>

#include "reports/results.h"

namespace replayeval::reports {

enum class Change : std::uint8_t {
  identical,  // the same log-probabilities and logits, token for token
  none,       // the interval holds zero
  worse,      // the interval lies above zero
  better,     // the interval lies below zero
  unknown,    // no delta, or none with an interval
};

struct Verdict {
  Change change = Change::unknown;
  // e.g. "no measurable change: ΔPPL +0.00001 % [-0.00002, +0.00004] (95 %)". How much is said by size of the delta:
  // below 0.01 % "a trace", below 0.1 % "slightly", below 1 % "noticeably", above "much".
  std::string text;
};

Verdict verdict(const Workload& workload, const std::string& arm);

}  // namespace replayeval::reports
