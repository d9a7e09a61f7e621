// An outcome's judgements in the order in which people want to read them.
#pragma once

#include <string>
#include <vector>

#include "reports/gate/gate.h"

namespace replayeval::reports::gate {

// What fails before what warns, regressions before what cannot be judged; those alike in the policy's order.
std::vector<Judgement> worst_first(const Outcome& outcome);

// Judgements that one line says: each by itself, but for those that decide nothing for one and the same reason.
struct Remark {
  Judgement first;
  std::vector<std::string> rules;     // distinct, in order
  std::vector<std::string> likewise;  // what the others are of: "arm 'x' on 'y'", distinct, in order
};

// Of all that do not pass, worst first.
std::vector<Remark> remarks(const Outcome& outcome);

std::string who(const Remark& remark);   // the rules' names
std::string what(const Remark& remark);  // the sentence, what would decide, and what it holds of as well

}  // namespace replayeval::reports::gate
