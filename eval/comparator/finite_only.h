// Numbers on their way into a result, which holds finite ones alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/results.h"

namespace replayeval {

// A perplexity of a text that the model has no idea of overflows, and so does the upper end of its interval long
// before. Such a number is left out, as one that was not computed; so are both ends of an interval with an end that is
// not finite. What was left out is counted.
class FiniteOnly {
 public:
  explicit FiniteOnly(reports::Workload& result) : result_(result) {}  // `result` outlives this

  void put(const std::string& arm, const std::string& name, reports::Metric metric);
  void put(const std::string& arm, const std::string& name, reports::Delta delta);  // paired with the baseline

  // One sentence for each name and kind of number: "word_perplexity: 2 values not finite, left out".
  std::vector<std::string> warnings() const;

 private:
  // Whether the value may stay.
  template <typename Number>
  bool admit(const std::string& name, Number& number);

  reports::Workload& result_;
  std::map<std::string, int> values_, intervals_;  // left out, by name
};

}  // namespace replayeval
