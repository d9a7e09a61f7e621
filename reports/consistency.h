// Whether results agree with themselves: what a program wrote does, what was edited by hand or patched together does
// not.
#pragma once

#include <string>

#include "reports/results.h"

namespace replayeval::reports {

// Checked: an interval holds its value; deltas are the differences of the two arms' metrics, and both forms of one
// delta say the same; counts fit (tokens of all arms, of position buckets, right and wrong answers, pooled tasks); a
// p-value and its interval reject together; quantiles ascend; an arm that is the baseline under another name has deltas
// of exactly 0; speeds are of the tokens and seconds beside them.
// Throws ResultsError with one line: `place`, a JSON pointer, what was found and what was expected.
void check_consistency(const Results& results, const std::string& place);

// The same line instead of an exception; "" where the results agree with themselves.
std::string contradiction_in(const Results& results, const std::string& place);

}  // namespace replayeval::reports
