// The gate's outcome for people: lines on a terminal, a Markdown summary of a CI job.
#pragma once

#include <string>

#include "reports/gate/gate.h"

namespace replayeval::reports::gate {

// "inconclusive: 9 of 14 judgements pass, 5 are inconclusive (exit code 2)": one line.
std::string headline(const Outcome& outcome);

// A line a judgement that does not pass, worst first (one for all that cannot be judged for the same reason); a line a
// rule, with its worst word; the headline. `colour` as in TableOptions.
std::string gate_text(const Outcome& outcome, bool colour);

// The rule, the interval, what decided, and how many tokens or samples are needed, for every judgement; then what the
// policy as a whole may get wrong.
std::string explanation(const Outcome& outcome);

// A heading, the headline, and a table of judgements; ends with a newline.
std::string gate_markdown(const Outcome& outcome);
// For a gate that could not run at all.
std::string markdown_of_fault(const std::string& message);

}  // namespace replayeval::reports::gate
