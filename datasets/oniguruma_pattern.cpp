#include "datasets/oniguruma_pattern.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "datasets/code_points.h"
#include "datasets/error.h"
#include "datasets/utf8.h"

namespace replayeval::datasets {
namespace {

constexpr std::size_t none = std::string::npos;
constexpr std::size_t max_depth = 200;  // of groups; PCRE2 refuses more than 250
constexpr std::uint64_t max_repeat = 65535;

// The content of a class, without brackets.
constexpr std::string_view white_space =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view not_white_space =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view hexadecimal = R"(0-9a-fA-F)";
constexpr std::string_view not_hexadecimal = R"(\x{0}-\x{2f}\x{3a}-\x{40}\x{47}-\x{60}\x{67}-\x{10ffff})";

struct NamedCategory {
  std::string_view long_name, short_name;
};
constexpr std::array categories = {
    NamedCategory{"Letter", "L"},
    NamedCategory{"Uppercase_Letter", "Lu"},
    NamedCategory{"Lowercase_Letter", "Ll"},
    NamedCategory{"Titlecase_Letter", "Lt"},
    NamedCategory{"Modifier_Letter", "Lm"},
    NamedCategory{"Other_Letter", "Lo"},
    NamedCategory{"Mark", "M"},
    NamedCategory{"Nonspacing_Mark", "Mn"},
    NamedCategory{"Spacing_Mark", "Mc"},
    NamedCategory{"Enclosing_Mark", "Me"},
    NamedCategory{"Number", "N"},
    NamedCategory{"Decimal_Number", "Nd"},
    NamedCategory{"Letter_Number", "Nl"},
    NamedCategory{"Other_Number", "No"},
    NamedCategory{"Punctuation", "P"},
    NamedCategory{"Connector_Punctuation", "Pc"},
    NamedCategory{"Dash_Punctuation", "Pd"},
    NamedCategory{"Open_Punctuation", "Ps"},
    NamedCategory{"Close_Punctuation", "Pe"},
    NamedCategory{"Initial_Punctuation", "Pi"},
    NamedCategory{"Final_Punctuation", "Pf"},
    NamedCategory{"Other_Punctuation", "Po"},
    NamedCategory{"Symbol", "S"},
    NamedCategory{"Math_Symbol", "Sm"},
    NamedCategory{"Currency_Symbol", "Sc"},
    NamedCategory{"Modifier_Symbol", "Sk"},
    NamedCategory{"Other_Symbol", "So"},
    NamedCategory{"Separator", "Z"},
    NamedCategory{"Space_Separator", "Zs"},
    NamedCategory{"Line_Separator", "Zl"},
    NamedCategory{"Paragraph_Separator", "Zp"},
    NamedCategory{"Other", "C"},
    NamedCategory{"Control", "Cc"},
    NamedCategory{"Format", "Cf"},
    NamedCategory{"Unassigned", "Cn"},
    NamedCategory{"Private_Use", "Co"},
};

bool is_ascii_letter(char32_t value) { return value < 0x80 && (value | 0x20) - U'a' < 26; }
bool is_ascii_digit(char32_t value) { return value - U'0' < 10; }
std::string hex_escape(char32_t value) { return fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(value)); }

// One escape, as both classes and patterns may hold it.
struct Escape {
  std::optional<char32_t> literal;
  std::string class_items;  // else: what it adds to a class; empty where a class cannot hold it (\W)
  std::string alone;        // and the same outside a class
};

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& place) : in_(pattern), place_(place) {}

  std::string translate() {
    if (const auto fault = find_utf8_fault(in_)) refuse("is not UTF-8");
    if (in_.starts_with("(?i)")) {  // elsewhere it would also close the alternatives before it
      caseless_ = true;
      out_ = "(?i)";
      at_ = 4;
    }
    while (at_ < in_.size()) step();
    if (!groups_.empty()) refuse("a group is not closed");
    return std::move(out_);
  }

 private:
  struct Group {
    std::size_t out_start;
    bool caseless_before;
  };

  [[noreturn]] void refuse(std::string_view what) const {
    throw DataError(fmt::format("{}: pattern '{}': byte {}: {}", place_, in_, at_, what));
  }

  bool next_is(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  char32_t peek() const { return at_ < in_.size() ? code_point_at(in_, at_).value : 0; }
  char32_t take() {
    if (at_ >= in_.size()) refuse("ends too early");
    const CodePoint found = code_point_at(in_, at_);
    at_ += found.size;
    return found.value;
  }

  void atom(std::string_view text) {
    atom_ = out_.size();
    out_ += text;
  }
  void assertion(std::string_view text) {
    out_ += text;
    atom_ = none;
    last_literal_ = 0;
  }

  void step() {
    switch (in_[at_]) {
      case '\\':
        return escape();
      case '[':
        return character_class();
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '*':
      case '+':
      case '?':
        return quantifier();
      case '{':
        return interval();
      case '|':
        ++at_;
        return assertion("|");
      case '^':
        ++at_;
        return assertion("(?m:^)");
      case '$':
        ++at_;
        return assertion("(?m:$)");
      case '.':
        ++at_;
        last_literal_ = 0;
        return atom("[^\\n]");
      default:
        return literal(take());
    }
  }

  // Case folding may take one character for two letters in a row: ss, st, ff, fi, fl are all that ASCII has.
  void literal(char32_t value) {
    if (caseless_ && value >= 0x80) refuse("a letter outside ASCII in a case-insensitive part is not supported");
    const char32_t lower = is_ascii_letter(value) ? value | 0x20 : value;
    if (caseless_ && ((last_literal_ == U's' && (lower == U's' || lower == U't')) ||
                      (last_literal_ == U'f' && (lower == U'f' || lower == U'i' || lower == U'l')))) {
      refuse("a case-insensitive ss, st, ff, fi or fl, which one character may match, is not supported");
    }
    last_literal_ = lower;
    atom(is_ascii_letter(value) || is_ascii_digit(value) ? std::string(1, static_cast<char>(value))
                                                         : hex_escape(value));
  }

  void escape() {
    ++at_;
    if (in_[std::min(at_, in_.size() - 1)] == 'b' || in_[std::min(at_, in_.size() - 1)] == 'B') return boundary();
    switch (peek()) {
      case 'A':
        ++at_;
        return assertion("\\A");
      case 'z':
        ++at_;
        return assertion("\\z");
      case 'Z':
        ++at_;
        return assertion("\\Z");
      default:
        break;
    }
    const Escape found = parse_escape();
    if (found.literal) return literal(*found.literal);
    last_literal_ = 0;
    atom(found.alone);
  }

  void boundary() {
    if (at_ >= in_.size()) refuse("ends too early");
    const bool negated = in_[at_++] == 'B';
    const std::string inside = fmt::format("[{}]", word);
    assertion(negated ? fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", inside)
                      : fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", inside));
  }

  static Escape class_escape(std::string_view items) { return {{}, std::string(items), fmt::format("[{}]", items)}; }

  // Behind the backslash.
  Escape parse_escape() {
    const std::size_t start = at_;
    const char32_t letter = take();
    switch (letter) {
      case 's':
        return class_escape(white_space);
      case 'S':
        return class_escape(not_white_space);
      case 'w':
        return class_escape(word);
      case 'W':
        return {{}, "", fmt::format("[^{}]", word)};
      case 'd':
        return class_escape("\\p{Nd}");
      case 'D':
        return class_escape("\\P{Nd}");
      case 'h':
        return class_escape(hexadecimal);
      case 'H':
        return class_escape(not_hexadecimal);
      case 'p':
      case 'P':
        return property(letter == 'P');
      case 't':
        return {U'\t', "", ""};
      case 'n':
        return {U'\n', "", ""};
      case 'r':
        return {U'\r', "", ""};
      case 'f':
        return {U'\f', "", ""};
      case 'v':
        return {U'\v', "", ""};
      case 'a':
        return {U'\a', "", ""};
      case 'e':
        return {char32_t{0x1B}, "", ""};
      case 'x':
      case 'u':
        return {hexadecimal_code(letter == 'u'), "", ""};
      default:
        break;
    }
    if (is_ascii_letter(letter) || is_ascii_digit(letter)) {
      at_ = start;
      refuse(fmt::format("the escape \\{} is not supported", static_cast<char>(letter)));
    }
    return {letter, "", ""};
  }

  // \xHH below 80, \x{H...}, \uHHHH.
  char32_t hexadecimal_code(bool four_digits) {
    const bool braces = !four_digits && next_is("{");
    if (braces) ++at_;
    const std::size_t most = four_digits ? 4 : braces ? 6 : 2;
    std::uint32_t value = 0;
    std::size_t digits = 0;
    for (; digits < most && at_ < in_.size(); ++digits, ++at_) {
      const char c = in_[at_];
      const int digit = c >= '0' && c <= '9'                     ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                 : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    if (digits == 0 || (four_digits && digits != 4) || (braces && take() != '}')) refuse("expected hexadecimal digits");
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000) || (most == 2 && value >= 0x80)) {
      refuse("the number is not that of a character");  // \x80 and above are lone bytes to Oniguruma
    }
    return value;
  }

  Escape property(bool negated) {
    if (caseless_) refuse("\\p in a case-insensitive part is not supported");
    if (take() != '{') refuse("expected { after \\p");
    if (next_is("^")) {
      negated = !negated;
      ++at_;
    }
    const std::size_t start = at_;
    while (at_ < in_.size() && in_[at_] != '}') ++at_;
    if (at_ >= in_.size()) refuse("\\p{ is not closed");
    const std::string_view name = in_.substr(start, at_ - start);
    ++at_;
    const std::string text = fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', property_name(name));
    return {{}, text, text};
  }

  std::string property_name(std::string_view name) const {
    for (const NamedCategory& category : categories) {
      if (name == category.long_name || name == category.short_name) return std::string(category.short_name);
    }
    if (name == "Alphabetic" || name == "White_Space") return std::string(name);
    if (name.empty() || name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") != none) {
      refuse(fmt::format("the property '{}' is not supported", name));
    }
    return fmt::format("sc:{}", name);  // a script, or PCRE2 refuses it
  }

  void character_class() {
    last_literal_ = 0;
    ++at_;
    std::string text = "[";
    if (next_is("^")) {
      ++at_;
      text += '^';
    }
    if (next_is("]")) refuse("a class that begins with ] is not supported; expected \\]");
    while (!next_is("]")) {
      if (at_ >= in_.size()) refuse("a class is not closed");
      text += class_item();
    }
    ++at_;
    atom(text + "]");
  }

  // A literal, a range or an escape.
  std::string class_item() {
    if (next_is("[")) refuse("a class within a class is not supported");
    if (next_is("&&")) refuse("an intersection of classes is not supported");
    const Escape first = class_element();
    if (!next_is("-") || in_.substr(at_).starts_with("-]")) {
      return first.literal ? hex_escape(*first.literal) : first.class_items;
    }
    if (!first.literal || *first.literal == '-') refuse("expected a single character before -");
    ++at_;
    if (next_is("[")) refuse("a class within a class is not supported");
    const Escape last = class_element();
    if (!last.literal || *last.literal < *first.literal)
      refuse("expected a character that is not before the range's first");
    return hex_escape(*first.literal) + "-" + hex_escape(*last.literal);
  }

  Escape class_element() {
    Escape found;
    if (next_is("\\")) {
      ++at_;
      if (peek() == 'b') refuse("\\b in a class is not supported");
      found = parse_escape();
      if (!found.literal && found.class_items.empty()) refuse("\\W in a class is not supported");
    } else {
      found.literal = take();
    }
    if (caseless_ && found.literal && *found.literal >= 0x80) {
      refuse("a letter outside ASCII in a case-insensitive part is not supported");
    }
    return found;
  }

  void open_group() {
    if (groups_.size() >= max_depth) refuse(fmt::format("expected at most {} groups in one another", max_depth));
    last_literal_ = 0;
    Group group{.out_start = out_.size(), .caseless_before = caseless_};
    struct Kind {
      std::string_view text;
      bool sets_case, caseless;
    };
    // A capture is only a group here. The longer texts come first.
    constexpr std::array kinds = {Kind{"(?<=", false, false}, Kind{"(?<!", false, false}, Kind{"(?i:", true, true},
                                  Kind{"(?-i:", true, false}, Kind{"(?:", false, false},  Kind{"(?=", false, false},
                                  Kind{"(?!", false, false},  Kind{"(?>", false, false}};
    for (const Kind& kind : kinds) {
      if (!next_is(kind.text)) continue;
      out_ += kind.text;
      at_ += kind.text.size();
      if (kind.sets_case) caseless_ = kind.caseless;
      groups_.push_back(group);
      atom_ = none;
      return;
    }
    if (next_is("(?")) refuse("this kind of group is not supported; expected (?: (?i: (?-i: (?= (?! (?<= (?<! (?>");
    ++at_;
    out_ += "(?:";
    groups_.push_back(group);
    atom_ = none;
  }

  void close_group() {
    if (groups_.empty()) refuse("a ) without its (");
    ++at_;
    out_ += ')';
    last_literal_ = 0;
    atom_ = groups_.back().out_start;
    caseless_ = groups_.back().caseless_before;
    groups_.pop_back();
  }

  void require_atom() const {
    if (atom_ == none) refuse("nothing to repeat");
  }

  void end_quantifier() {
    if (at_ < in_.size() && (in_[at_] == '*' || in_[at_] == '+' || in_[at_] == '?')) {
      refuse("a repeated repetition is not supported");
    }
    last_literal_ = 0;
    atom_ = none;
  }

  void quantifier() {
    require_atom();
    out_ += in_[at_++];
    if (next_is("?") || next_is("+")) out_ += in_[at_++];
    end_quantifier();
  }

  std::optional<std::uint64_t> number() {
    std::optional<std::uint64_t> value;
    for (; at_ < in_.size() && is_ascii_digit(static_cast<unsigned char>(in_[at_])); ++at_) {
      value = value.value_or(0) * 10 + static_cast<std::uint64_t>(in_[at_] - '0');
      if (*value > max_repeat) refuse(fmt::format("expected a repetition of at most {}", max_repeat));
    }
    return value;
  }

  void interval() {
    const std::size_t start = at_++;
    const auto low = number();
    const bool comma = next_is(",");
    if (comma) ++at_;
    const auto high = comma ? number() : low;
    if ((!low && !high) || !next_is("}")) {  // no interval: the brace stands for itself
      at_ = start + 1;
      return literal('{');
    }
    ++at_;
    require_atom_at(start);
    if (low && high && *high < *low) refuse("expected an interval from low to high");
    const std::string text = fmt::format("{{{}{}}}", low.value_or(0),
                                         !comma ? ""
                                         : high ? fmt::format(",{}", *high)
                                                : ",");
    const bool again = next_is("+") || (next_is("?") && !comma);
    if (again) out_.insert(atom_, "(?:");
    out_ += text;
    if (again) out_ += ')';
    if (next_is("+") || next_is("?")) out_ += in_[at_++];
    end_quantifier();
  }

  void require_atom_at(std::size_t start) {
    if (atom_ == none) {
      at_ = start;
      refuse("nothing to repeat");
    }
  }

  std::string_view in_;
  const std::string& place_;
  std::size_t at_ = 0;
  std::string out_;
  std::vector<Group> groups_;
  std::size_t atom_ = none;  // where in out_ the atom before this place begins, if there is one to repeat
  bool caseless_ = false;
  char32_t last_literal_ = 0;  // in lower case, if the last thing was a letter that stands for itself
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern, const std::string& place) {
  return Translator(pattern, place).translate();
}

}  // namespace replayeval::datasets
