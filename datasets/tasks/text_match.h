// Generated text against accepted answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "datasets/tasks/python_json.h"
#include "datasets/tasks/python_regex.h"

namespace replayeval::tasks {

// exact_match of the harness: what is ignored is taken out of both sides in this order, regexes first.
class ExactMatch {
 public:
  // {regexes_to_ignore?, ignore_case?, ignore_punctuation?, ignore_numbers?}. Throws DataError naming the key.
  ExactMatch(const OrderedJson& options, const std::string& place);
  bool equal(std::string_view left, std::string_view right) const { return reduced(left) == reduced(right); }

 private:
  std::string reduced(std::string_view text) const;

  std::vector<PythonRegex> regexes_;
  bool case_ = false, punctuation_ = false, numbers_ = false;
};

// Whether `answer` stands in `text`, case ignored, as the harness's tasks squad_completion, fda and swde score.
bool contains(std::string_view text, const std::string& answer);

// F1 over words of SQuAD (Rajpurkar et al. 2016): lower case, without ASCII punctuation and the articles a, an, the.
double word_f1(std::string_view text, std::string_view answer);

}  // namespace replayeval::tasks
