// The harness's filters: what a metric sees of generated texts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/tasks/task_settings.h"

namespace replayeval::tasks {

// Texts of one request, as many as it had repeats; `single` once a filter has taken one of them out of its list.
struct FilteredTexts {
  std::vector<std::string> texts;
  bool single = false;
};

// regex, take_first, take_first_k, majority_vote, lowercase and remove_whitespace, one after the other.
class ResponseFilter {
 public:
  // Throws DataError, `place` first: a filter that is not supported, an option that is wrong, a pattern that does not
  // compile, a filter behind take_first (whose single text has no list around it that the filter could go through).
  ResponseFilter(const FilterSpec& spec, const std::string& place);

  const std::string& name() const { return name_; }
  // `texts` is not empty. Throws DataError where a pattern goes beyond PCRE2's limits.
  FilteredTexts apply(std::vector<std::string> texts) const;

 private:
  std::string name_;
  std::vector<std::function<void(FilteredTexts&)>> steps_;
};

// The filters of a task; "none", which takes the first response, if it names none.
std::vector<FilterSpec> filters_of(const TaskSettings& settings);

}  // namespace replayeval::tasks
