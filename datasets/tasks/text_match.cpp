#include "datasets/tasks/text_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "datasets/code_points.h"
#include "datasets/tasks/json_member.h"
#include "datasets/tasks/python_text.h"

namespace replayeval::tasks {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (std::size_t at = 0; at < text.size();) {
    const datasets::CodePoint point = datasets::code_point_at(text, at);
    if (!is_python_space(point.value)) {
      word += text.substr(at, point.size);
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
    at += point.size;
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> normalized_words(std::string_view text) {
  static const PythonRegex articles(R"(\b(?:a|an|the)\b)", "articles");
  return words_of(articles.remove_all(without_punctuation(lower(text))));
}

bool flag(const OrderedJson& options, const char* key, const std::string& place) {
  const OrderedJson* value = find_member(options, key, place);
  return value != nullptr && as_boolean(*value, place + "." + key);
}

}  // namespace

ExactMatch::ExactMatch(const OrderedJson& options, const std::string& place) {
  if (options.is_null()) return;
  case_ = flag(options, "ignore_case", place);
  punctuation_ = flag(options, "ignore_punctuation", place);
  numbers_ = flag(options, "ignore_numbers", place);
  if (const OrderedJson* list = find_member(options, "regexes_to_ignore", place)) {
    const std::string at = place + ".regexes_to_ignore";
    if (!list->is_array()) refuse(*list, at, "a list of patterns");
    for (const OrderedJson& pattern : *list) regexes_.emplace_back(as_string(pattern, at), at);
  }
}

std::string ExactMatch::reduced(std::string_view text) const {
  std::string left(text);
  for (const PythonRegex& regex : regexes_) left = regex.remove_all(left);
  if (case_) left = lower(left);
  if (punctuation_) left = without_punctuation(left);
  if (numbers_) left = without_digits(left);
  return left;
}

bool contains(std::string_view text, const std::string& answer) {
  return answer.empty() || PythonRegex::literal(answer, true).found_in(text);
}

double word_f1(std::string_view text, std::string_view answer) {
  const std::vector<std::string> found = normalized_words(text), expected = normalized_words(answer);
  if (found.empty() || expected.empty()) return found.empty() && expected.empty() ? 1 : 0;
  std::map<std::string, std::int64_t> left;
  for (const std::string& word : expected) ++left[word];
  const auto shared = std::count_if(found.begin(), found.end(), [&](const auto& word) { return left[word]-- > 0; });
  if (shared == 0) return 0;
  const double precision = static_cast<double>(shared) / static_cast<double>(found.size());
  const double recall = static_cast<double>(shared) / static_cast<double>(expected.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace replayeval::tasks
