#include "reports/html/markup.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cmath>

namespace replayeval::reports::html {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

bool is_forbidden(utf8proc_int32_t c) { return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0); }

void append_escaped(std::string& out, utf8proc_int32_t c, std::string_view bytes) {
  switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += is_forbidden(c) ? replacement : bytes;
  }
}

std::string opening(std::string_view name, const Attributes& attributes) {
  std::string text = fmt::format("<{}", name);
  for (const auto& [key, value] : attributes) text += fmt::format(" {}=\"{}\"", key, escaped(value));
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    utf8proc_int32_t character = 0;
    const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                        static_cast<utf8proc_ssize_t>(text.size()), &character);
    if (bytes <= 0) {
      out += replacement;
      text.remove_prefix(1);
      continue;
    }
    append_escaped(out, character, text.substr(0, static_cast<std::size_t>(bytes)));
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return out;
}

std::string element(std::string_view name, const Attributes& attributes, std::string_view inner_markup) {
  return fmt::format("{}>{}</{}>", opening(name, attributes), inner_markup, name);
}

std::string text_element(std::string_view name, const Attributes& attributes, std::string_view text) {
  return element(name, attributes, escaped(text));
}

std::string coordinate(double value) {
  const double rounded = std::round(value * 100.0) / 100.0;
  return fmt::format("{:g}", rounded == 0.0 ? 0.0 : rounded);  // no "-0"
}

}  // namespace replayeval::reports::html
