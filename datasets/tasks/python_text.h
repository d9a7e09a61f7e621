// What Python's str methods do, as metrics of the harness are defined by them. All text is UTF-8, well formed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace replayeval::tasks {

// str.isspace of one character: Unicode's White_Space and the separators U+001C … U+001F.
bool is_python_space(char32_t value);

// The bytes of `text` before the white space that ends it: its size where none does.
std::size_t size_without_trailing_space(std::string_view text);
std::string_view strip(std::string_view text);  // str.strip()

// str.lower(): İ becomes two code points, Σ at the end of a word ς.
std::string lower(std::string_view text);

// Without the characters of string.punctuation and string.digits: ASCII only.
std::string without_punctuation(std::string_view text);
std::string without_digits(std::string_view text);

std::int64_t code_point_count(std::string_view text);  // len(text)
std::int64_t word_count(std::string_view text);        // len(re.split(r"\s+", text)): "" is one word

// repr(text) of a str, and str(value) of a float: the shortest digits that read back to the same double.
std::string python_repr(std::string_view text);
std::string python_float(double value);

}  // namespace replayeval::tasks
