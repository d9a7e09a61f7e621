#include "datasets/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "datasets/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace replayeval::datasets {
namespace {

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct LinePattern::Impl {
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;
  std::string description;  // for messages
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }
};

LinePattern::LinePattern(const std::string& pattern, const std::string& place) : impl_(std::make_unique<Impl>()) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr std::uint32_t options = PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED;
  impl_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset, nullptr);
  if (impl_->code == nullptr) {
    throw DataError(fmt::format("{}: separator '{}' is not a regular expression: {} at byte {}", place, pattern,
                                pcre2_message(error), offset));
  }
  impl_->description = fmt::format("separator '{}' ({})", pattern, place);
  impl_->match = pcre2_match_data_create_from_pattern(impl_->code, nullptr);
}

LinePattern::~LinePattern() = default;
LinePattern::LinePattern(LinePattern&&) noexcept = default;
LinePattern& LinePattern::operator=(LinePattern&&) noexcept = default;

bool LinePattern::matches(std::string_view line) const {
  const int found = pcre2_match(impl_->code, reinterpret_cast<PCRE2_SPTR>(line.data()), line.size(), 0,
                                PCRE2_NO_UTF_CHECK, impl_->match, nullptr);
  if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
    throw DataError(fmt::format("{}: {}; expected a pattern that decides with less backtracking", impl_->description,
                                pcre2_message(found)));
  }
  return found >= 0;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

std::vector<std::string_view> split_documents(std::string_view text, const LinePattern& separator,
                                              const std::string& file) {
  std::vector<std::string_view> documents;
  const auto add = [&](std::size_t begin, std::size_t end) {
    const std::string_view piece = text.substr(begin, end - begin);
    if (!is_blank(piece)) {
      documents.push_back(piece);
    }
  };
  const auto is_separator = [&](std::string_view line) {
    try {
      return separator.matches(line);
    } catch (const DataError& error) {
      const auto lines_before = std::count(text.data(), line.data(), '\n');
      throw DataError(fmt::format("{}: line {}: {}", file, lines_before + 1, error.what()));
    }
  };
  std::size_t begin = 0;
  for (std::size_t line_begin = 0; line_begin < text.size();) {
    const std::size_t newline = std::min(text.find('\n', line_begin), text.size());
    std::string_view line = text.substr(line_begin, newline - line_begin);
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    const std::size_t line_end = std::min(newline + 1, text.size());
    if (is_separator(line)) {
      add(begin, line_begin);
      begin = line_end;
    }
    line_begin = line_end;
  }
  add(begin, text.size());
  return documents;
}

}  // namespace replayeval::datasets
