// PCRE2 patterns over text that is known to be UTF-8.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace replayeval::datasets {

struct Match {
  std::size_t begin = 0, end = 0;
  bool is_match = false;  // false: the text between two matches
};

// Compiled with UTF and UCP, and to machine code where PCRE2 can. Copies share the compiled pattern; safe to use from
// several threads.
class Regex {
 public:
  // `pattern` in PCRE2's syntax. Throws DataError, `place` first, when it does not compile.
  Regex(const std::string& pattern, const std::string& place);
  // Matches `text` itself.
  static Regex literal(const std::string& text, const std::string& place);

  // Appends the matches from left to right and the text between them: together they cover `text`. An empty match at the
  // end of the one before it does not count. Throws DataError if the pattern backtracks beyond PCRE2's limits.
  void find_all(std::string_view text, std::vector<Match>& matches) const;
  bool matches_at_start(std::string_view text) const;

 private:
  struct Compiled;
  Regex(const std::string& pattern, unsigned options, const std::string& place);
  bool search(std::string_view text, std::size_t from, unsigned options, Match& found) const;

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace replayeval::datasets
