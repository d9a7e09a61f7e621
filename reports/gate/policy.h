// What a change may cost: the rules that the gate holds results against (configs/gates/README.md describes the file).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace replayeval::reports::gate {

// What happens to the exit code when an interval reaches over a margin.
enum class OnInconclusive : std::uint8_t { pass, warn, fail };

enum class Compare : std::uint8_t {
  interval,  // the whole interval decides
  value,     // the value alone does: for counts, maxima and quantiles, and for what must be equal to the bit
};

enum class Against : std::uint8_t {
  baseline,  // the number as it is in the results
  release,   // its change since the results of --baseline
};

enum class Pool : std::uint8_t {
  each,       // every workload is judged by itself
  questions,  // all tasks together, every question counts the same
  tasks,      // all tasks together, every task counts the same
};

struct Interval {
  double low = 0.0, high = 0.0;
};

// Bounds are inside: a value that equals one passes. At least one is there.
struct Margin {
  std::optional<double> at_least, at_most;
};

struct Rule {
  std::string name;
  std::string metric;                          // GROUP.NAME, NAME a glob: "delta.perplexity_relative"
  std::vector<std::string> workloads = {"*"};  // globs
  std::vector<std::string> arms = {"*"};  // globs; the baseline arm is left out where it is what others are held to
  Margin margin;
  double confidence = 0.95;  // of the interval; each side of a margin is missed with at most (1 - confidence) / 2
  OnInconclusive inconclusive = OnInconclusive::fail;
  Compare compare = Compare::interval;
  Against against = Against::baseline;
  Pool pool = Pool::each;
  std::optional<std::string> stored_arm;  // of stored_*: a glob of stored arms that may be another than the arm itself
  std::optional<double> uncertainty;      // of speed: relative, how far a repeated run strays; results hold no interval
  std::string place;                      // "FILE:LINE:COL", for messages

  std::string group() const { return metric.substr(0, metric.find('.')); }
  std::string pattern() const { return metric.substr(metric.find('.') + 1); }
};

struct Policy {
  std::string name;
  std::vector<Rule> rules;
};

// The groups that a metric's name starts with.
//   delta        a difference from the baseline arm: perplexity_relative, acc, truncated, accuracy/TASK, ...
//   divergence   of an arm's distributions from the baseline arm's: kl_mean, same_top1, identical, ...
//   stored_delta, stored_divergence   the same from what a portable baseline keeps of the arm (run --against)
//   arm          an arm's own number: perplexity, acc, ...
//   speed        tokens_per_second, and over_baseline: the ratio to the baseline arm in the same run
//   bytes        state, ring: stored per sequence
//   state_error  local, propagated, gold: the largest relative Frobenius error over layers and positions
//   storage      saturated, non_finite: values stored so, over all layers
//   churn        broken: checks that do not hold
std::vector<std::string> groups();
// The names of a group where they are fixed; empty where results decide (delta, divergence, stored_*, arm).
std::vector<std::string> names_of_group(const std::string& group);

// Numbers that have no sampling error: they are compared by value.
bool is_counted(const std::string& group);

// What a rule's number can be, and so what a margin can mean.
enum class Scale : std::uint8_t {
  share,       // 0 to 1: same_top1, acc, truncated
  difference,  // of two shares, -1 to 1
  relative,    // new / old - 1
  ratio,       // new / old
  plain,       // has a unit of its own: nats, tokens, bytes, tokens a second, counts
  unknown,     // results decide what it is
};
Scale scale_of(const Rule& rule);

const char* name_of(OnInconclusive value);
const char* name_of(Pool pool);
std::string margin_text(const Rule& rule);  // "at most +0.1 %", "from -2 to +2 points"
std::string number_text(double value,
                        const Rule& rule);  // in the unit of what the rule compares: percent, points, none
// "+0.40 [+0.25, +0.62] %": with as many decimals as the interval's width justifies.
std::string spread_text(double value, const std::optional<Interval>& interval, const Rule& rule);

}  // namespace replayeval::reports::gate
