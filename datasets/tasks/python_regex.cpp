#include "datasets/tasks/python_regex.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdint>
#include <utility>

#include "datasets/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace replayeval::tasks {
namespace {

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

bool are_hex_digits(std::string_view text) {
  for (const char byte : text)
    if (std::isxdigit(static_cast<unsigned char>(byte)) == 0) return false;
  return true;
}

// What stands for the escape at the head of `pattern`, and its size there.
std::pair<std::string, std::size_t> translated_escape(std::string_view pattern, bool in_class) {
  const char kind = pattern.size() > 1 ? pattern[1] : '\0';
  if (kind == 's') return {in_class ? R"(\s\x1c-\x1f)" : R"([\s\x1c-\x1f])", 2};
  if (kind == 'S' && !in_class) return {R"([^\s\x1c-\x1f])", 2};
  if (kind == 'Z') return {R"(\z)", 2};
  const std::size_t digits = kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (digits != 0 && pattern.size() >= 2 + digits && are_hex_digits(pattern.substr(2, digits)))
    return {fmt::format("\\x{{{}}}", pattern.substr(2, digits)), 2 + digits};
  return {std::string(pattern.substr(0, 2)), std::min<std::size_t>(2, pattern.size())};
}

}  // namespace

std::string to_pcre2(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::string_view rest = pattern.substr(at);
    if (rest[0] == '\\') {
      const auto [text, size] = translated_escape(rest, in_class);
      out += text;
      at += size;
      continue;
    }
    if (!in_class && rest.starts_with("{,")) {  // at most n: PCRE2 10.42 takes it for text
      out += "{0,";
      at += 2;
      continue;
    }
    if (!in_class && rest[0] == '[') {
      in_class = true;
      // A ] that comes first stands for itself.
      const std::size_t head = rest.starts_with("[^]") ? 3 : rest.starts_with("[]") || rest.starts_with("[^") ? 2 : 1;
      out += rest.substr(0, head);
      at += head;
      continue;
    }
    if (in_class && rest[0] == ']') in_class = false;
    if (in_class && rest[0] == '[') out += '\\';  // so that [:alpha:] and the like are letters, as in Python
    out += rest[0];
    ++at;
  }
  return out;
}

struct PythonRegex::Compiled {
  pcre2_code* code = nullptr;
  std::string place;

  Compiled(const std::string& pattern, std::uint32_t options, std::string where) : place(std::move(where)) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
        pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | options, &error,
                         &offset, context.get());
    if (code == nullptr)
      throw datasets::DataError(fmt::format("{}: '{}' is not a regular expression: {} at byte {}", place, pattern,
                                            message_of(error), offset));
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { pcre2_code_free(code); }
};

PythonRegex::PythonRegex(const std::string& pattern, const std::string& place, bool ignore_case)
    : compiled_(std::make_shared<const Compiled>(
          to_pcre2(pattern), PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0U), place)) {}

PythonRegex PythonRegex::literal(const std::string& text, bool ignore_case) {
  return PythonRegex(std::make_shared<const Compiled>(text, PCRE2_LITERAL | (ignore_case ? PCRE2_CASELESS : 0U), text));
}

// After an empty match the next one may begin where it lies, if it is not empty.
template <typename Use>
void PythonRegex::for_each_match(std::string_view text, Use use) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(compiled_->code, nullptr), &pcre2_match_data_free);
  std::uint32_t options = PCRE2_NO_UTF_CHECK;
  for (std::size_t from = 0; from <= text.size();) {
    const int count = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                  options, data.get(), nullptr);
    if (count == PCRE2_ERROR_NOMATCH) return;
    if (count < 0)
      throw datasets::DataError(
          fmt::format("{}: matching from byte {}: {}", compiled_->place, from, message_of(count)));
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.get());
    if (!use(bounds, pcre2_get_ovector_count(data.get()))) return;
    options = PCRE2_NO_UTF_CHECK | (bounds[0] == bounds[1] ? PCRE2_NOTEMPTY_ATSTART : 0U);
    from = std::max<std::size_t>(bounds[1], from);
  }
}

std::vector<std::vector<std::string>> PythonRegex::find_all(std::string_view text) const {
  std::vector<std::vector<std::string>> matches;
  for_each_match(text, [&](const PCRE2_SIZE* bounds, std::uint32_t count) {
    std::vector<std::string> groups;
    for (std::uint32_t group = count > 1 ? 1 : 0; group < count; ++group) {
      const bool set = bounds[2 * group] != PCRE2_UNSET;
      groups.emplace_back(set ? text.substr(bounds[2 * group], bounds[2 * group + 1] - bounds[2 * group]) : "");
    }
    matches.push_back(std::move(groups));
    return true;
  });
  return matches;
}

std::string PythonRegex::remove_all(std::string_view text) const {
  std::string kept;
  std::size_t covered = 0;
  for_each_match(text, [&](const PCRE2_SIZE* bounds, std::uint32_t /*count*/) {
    kept += text.substr(covered, bounds[0] - covered);
    covered = bounds[1];
    return true;
  });
  return kept.append(text.substr(covered));
}

bool PythonRegex::found_in(std::string_view text) const {
  bool found = false;
  for_each_match(text, [&](const PCRE2_SIZE* /*bounds*/, std::uint32_t /*count*/) {
    found = true;
    return false;
  });
  return found;
}

}  // namespace replayeval::tasks
