// Regular expressions as Python's re module means them, through PCRE2.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace replayeval::tasks {

// Compiled once; copies share it. What differs between the two dialects and is common in tasks is translated (\s, \Z,
// \uXXXX, {,n}); the classes of characters are those of PCRE2's Unicode version.
class PythonRegex {
 public:
  // Throws DataError, `place` first, when the pattern does not compile.
  PythonRegex(const std::string& pattern, const std::string& place, bool ignore_case = false);
  // Matches `text` itself (re.escape).
  static PythonRegex literal(const std::string& text, bool ignore_case);

  // re.findall: of every match its groups, or, of a pattern without any, the match itself.
  // Throws DataError if matching goes beyond PCRE2's limits, as the other two do.
  std::vector<std::vector<std::string>> find_all(std::string_view text) const;
  std::string remove_all(std::string_view text) const;  // re.sub(pattern, "", text)
  bool found_in(std::string_view text) const;           // re.search

 private:
  struct Compiled;
  explicit PythonRegex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  template <typename Use>
  void for_each_match(std::string_view text, Use use) const;

  std::shared_ptr<const Compiled> compiled_;
};

// The pattern in PCRE2's dialect.
std::string to_pcre2(std::string_view pattern);

}  // namespace replayeval::tasks
