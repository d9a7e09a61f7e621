#include "datasets/regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "datasets/code_points.h"
#include "datasets/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace replayeval::datasets {
namespace {

constexpr std::size_t max_pattern_bytes = 1 << 16;
// Steps of one match: PCRE2's own default, and some for each byte, as \s*\n gives back a whole run of spaces.
constexpr std::size_t match_steps = 10'000'000, match_steps_per_byte = 8;
constexpr std::size_t first_jit_stack = 1 << 15, largest_jit_stack = 1 << 26;  // bytes; taken when needed

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// What a match needs to write to: one of it for each thread, whatever the pattern.
struct MatchSpace {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(first_jit_stack, largest_jit_stack, nullptr);

  MatchSpace() { pcre2_jit_stack_assign(context, nullptr, stack); }
  MatchSpace(const MatchSpace&) = delete;
  MatchSpace& operator=(const MatchSpace&) = delete;
  ~MatchSpace() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

MatchSpace& match_space() {
  thread_local MatchSpace space;
  return space;
}

}  // namespace

struct Regex::Compiled {
  pcre2_code* code = nullptr;
  std::string place;
  bool jit = false;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { pcre2_code_free(code); }
};

Regex::Regex(const std::string& pattern, unsigned options, const std::string& place) {
  if (pattern.size() > max_pattern_bytes) {
    throw DataError(
        fmt::format("{}: pattern of {} bytes; expected at most {}", place, pattern.size(), max_pattern_bytes));
  }
  auto compiled = std::make_shared<Compiled>();
  compiled->place = place;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | options,
                                 &error, &offset, context.get());
  if (compiled->code == nullptr) {
    throw DataError(fmt::format("{}: '{}' is not a regular expression: {} at byte {}", place, pattern,
                                pcre2_message(error), offset));
  }
  compiled->jit = pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE) == 0;
  compiled_ = std::move(compiled);
}

Regex::Regex(const std::string& pattern, const std::string& place)
    : Regex(pattern, PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, place) {}

Regex Regex::literal(const std::string& text, const std::string& place) { return {text, PCRE2_LITERAL, place}; }

bool Regex::search(std::string_view text, std::size_t from, unsigned options, Match& found) const {
  const MatchSpace& space = match_space();
  pcre2_set_match_limit(
      space.context, static_cast<std::uint32_t>(std::min<std::size_t>(match_steps + text.size() * match_steps_per_byte,
                                                                      std::numeric_limits<std::int32_t>::max())));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  // pcre2_jit_match skips all checks, and knows no anchoring at match time.
  const int count =
      compiled_->jit && options == 0
          ? pcre2_jit_match(compiled_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, space.data, space.context)
          : pcre2_match(compiled_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | options, space.data,
                        space.context);
  if (count == PCRE2_ERROR_NOMATCH) return false;
  if (count < 0)
    throw DataError(fmt::format("{}: matching from byte {}: {}", compiled_->place, from, pcre2_message(count)));
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(space.data);
  found = {.begin = bounds[0], .end = bounds[1], .is_match = true};
  return true;
}

bool Regex::matches_at_start(std::string_view text) const {
  Match ignored;
  return search(text, 0, PCRE2_ANCHORED, ignored);
}

void Regex::find_all(std::string_view text, std::vector<Match>& matches) const {
  std::size_t covered = 0, from = 0;
  bool any = false;
  Match found;
  while (from <= text.size() && search(text, from, 0, found)) {
    if (any && found.begin == found.end && found.end == covered) {  // empty, right behind the match before it
      if (from >= text.size()) break;
      from += code_point_at(text, from).size;
      continue;
    }
    if (covered < found.begin) matches.push_back({.begin = covered, .end = found.begin, .is_match = false});
    matches.push_back(found);
    from = covered = found.end;
    any = true;
  }
  if (covered < text.size()) matches.push_back({.begin = covered, .end = text.size(), .is_match = false});
}

}  // namespace replayeval::datasets
