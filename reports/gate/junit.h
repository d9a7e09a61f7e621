// The gate's outcome as JUnit XML: a test case a judgement.
#pragma once

#include <string>

#include "reports/gate/gate.h"

namespace replayeval::reports::gate {

// Regressions and what the policy makes a failure are <failure>, what cannot be judged is <error>, what the policy lets
// through with a warning is <skipped>, what passes is <system-out>.
std::string junit_xml(const Outcome& outcome);
// For a gate that could not run at all: one case with an <error>.
std::string junit_xml_of_fault(const std::string& message);

// For text and attributes; characters that XML 1.0 has no spelling for (controls, U+FFFE, U+FFFF) become '?'.
std::string xml_escaped(const std::string& text);

}  // namespace replayeval::reports::gate
