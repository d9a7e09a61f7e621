// Holds results against a policy. A results file is enough: nothing is computed again.
//
// Three words: pass (the interval lies inside the margin), regression (it lies wholly outside), inconclusive (neither).
// What cannot be judged (a metric, an arm, a workload or an interval that is not there; results that do not belong
// together) is none of the three, and never lets a change through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/gate/measurement.h"
#include "reports/gate/policy.h"
#include "reports/results.h"

namespace replayeval::reports::gate {

// The interval of fewer resampling units lets nothing pass: four to eight blocks of real text hold the truth of a
// perplexity delta only 89 to 95 times in a hundred (reports/measurements.md, "Intervals").
inline constexpr std::int64_t fewest_units_to_pass = 10;

enum class Word : std::uint8_t { pass, regression, inconclusive, unusable };
enum class Effect : std::uint8_t { pass, warn, fail };

struct Judgement {
  Rule rule;
  Measurement measured;
  Word word = Word::unusable;
  Effect effect = Effect::fail;
  // How many tokens, documents or sequences in all decide with 80 % power if the true value is the one found; absent
  // where that cannot be said: no interval, no count, a value that sits on a bound, or a doubt that more would not
  // lift.
  std::optional<std::int64_t> needed;
};

struct Outcome {
  std::string policy;
  std::vector<Judgement> judgements;
  std::vector<std::string> warnings;  // of the results as a whole; they do not decide
  // 0 pass, 1 a regression, 3 something could not be judged, 2 inconclusive where the policy says fail; the first of
  // 1, 3, 2 that occurs. Without a judgement 3.
  int exit_code() const;
};

// Every rule gives at least one judgement. `release`: results to compare with, for rules against a release; one of
// other data, another checkpoint or other arms makes these unusable. Throws ResultsError when results contradict
// themselves, when there are no workloads, and when there is a release but no rule against it.
Outcome judge(const Policy& policy, const NamedRun& run, const std::optional<NamedRun>& release);

// The word for an interval; `low` == `high` compares a value.
Word word_for(const Interval& interval, const Margin& margin);
// See Judgement::needed.
std::optional<std::int64_t> needed_to_decide(const Measurement& measured, const Margin& margin, double power = 0.8);

const char* name_of(Word word);
const char* name_of(Effect effect);
std::string subject(const Measurement& measured);    // "delta.acc of arm 'x' on 'y'"
std::string sentence(const Judgement& judgement);    // subject, value, interval and what was expected
std::string found_text(const Judgement& judgement);  // "+0.40 [+0.25, +0.62] % (95 %)"
// "26,000 more tokens (50,576 in all) would decide ..."; "" for other words and where nothing can be said.
std::string need_text(const Judgement& judgement);

}  // namespace replayeval::reports::gate
