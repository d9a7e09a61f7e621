// Parting a file's text into documents.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace replayeval::datasets {

// A PCRE2 pattern that must match a whole line (without its end, \n or \r\n).
class LinePattern {
 public:
  // Throws DataError, `place` first, when the pattern does not compile: what is wrong and where in the pattern.
  LinePattern(const std::string& pattern, const std::string& place);
  ~LinePattern();
  LinePattern(LinePattern&&) noexcept;
  LinePattern& operator=(LinePattern&&) noexcept;

  // `line` must be UTF-8. Throws DataError, naming pattern and place, if it backtracks beyond PCRE2's limits.
  bool matches(std::string_view line) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

bool is_blank(std::string_view text);  // nothing but ASCII white space

// The pieces between separator lines, without those lines and without blank pieces. Throws DataError, `file` and the
// line first, where LinePattern::matches does.
std::vector<std::string_view> split_documents(std::string_view text, const LinePattern& separator,
                                              const std::string& file);

}  // namespace replayeval::datasets
