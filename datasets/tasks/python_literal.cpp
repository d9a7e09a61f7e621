#include "datasets/tasks/python_literal.h"

#include <charconv>
#include <cstdint>

#include "datasets/code_points.h"
#include "datasets/tasks/python_text.h"

namespace replayeval::tasks {
namespace {

// Reads from the left; every function returns nothing where the text is not what it reads.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  std::optional<std::vector<OrderedJson>> list() {
    skip_space();
    const char close = take("[") ? ']' : take("(") ? ')' : '\0';
    if (close == '\0') return std::nullopt;
    std::vector<OrderedJson> elements;
    for (;;) {
      skip_space();
      if (take(std::string_view(&close, 1))) break;
      auto element = scalar();
      if (!element) return std::nullopt;
      elements.push_back(std::move(*element));
      skip_space();
      if (take(",")) continue;
      if (!take(std::string_view(&close, 1))) return std::nullopt;
      break;
    }
    skip_space();
    return text_.empty() ? std::optional(std::move(elements)) : std::nullopt;
  }

 private:
  void skip_space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size())); }
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::optional<OrderedJson> scalar() {
    if (take("True")) return OrderedJson(true);
    if (take("False")) return OrderedJson(false);
    if (take("None")) return OrderedJson(nullptr);
    if (!text_.empty() && (text_[0] == '\'' || text_[0] == '"')) return string();
    return number();
  }

  std::optional<OrderedJson> number() {
    const char* end = text_.data() + text_.size();
    std::int64_t whole = 0;
    double real = 0;
    const auto as_whole = std::from_chars(text_.data(), end, whole);
    const auto as_real = std::from_chars(text_.data(), end, real);
    if (as_real.ec != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(as_real.ptr - text_.data()));
    const bool is_whole = as_whole.ec == std::errc() && as_whole.ptr == as_real.ptr;
    return is_whole ? OrderedJson(whole) : OrderedJson(real);
  }

  std::optional<OrderedJson> string() {
    const char quote = text_[0];
    text_.remove_prefix(1);
    std::string value;
    while (!text_.empty()) {
      const char byte = text_[0];
      text_.remove_prefix(1);
      if (byte == quote) return OrderedJson(std::move(value));
      if (byte != '\\') {
        value += byte;
      } else if (!escape(value)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  bool escape(std::string& value) {
    if (text_.empty()) return false;
    const char kind = text_[0];
    text_.remove_prefix(1);
    constexpr std::string_view kinds = "nrtabfv0\\'\"", values{"\n\r\t\a\b\f\v\0\\'\"", 11};
    if (const std::size_t at = kinds.find(kind); at != std::string_view::npos) {
      value += values[at];
      return true;
    }
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0 || text_.size() < digits) return false;
    std::uint32_t point = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + digits, point, 16);
    if (error != std::errc() || end != text_.data() + digits) return false;
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
    datasets::append_utf8(point, value);
    text_.remove_prefix(digits);
    return true;
  }

  std::string_view text_;
};

std::string repr(const OrderedJson& value) {
  if (value.is_string()) return python_repr(value.get_ref<const std::string&>());
  if (!value.is_structured()) return python_str(value);
  std::string text(1, value.is_object() ? '{' : '[');
  for (const auto& item : value.items()) {
    if (text.size() > 1) text += ", ";
    if (value.is_object()) text += python_repr(item.key()) + ": ";
    text += repr(item.value());
  }
  return text + (value.is_object() ? '}' : ']');
}

}  // namespace

std::optional<std::vector<OrderedJson>> parse_python_list(std::string_view text) { return LiteralReader(text).list(); }

std::string python_str(const OrderedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  if (value.is_number_float()) return python_float(value.get<double>());
  return value.is_structured() ? repr(value) : value.dump();
}

}  // namespace replayeval::tasks
