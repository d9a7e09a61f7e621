// HTML and SVG as text. Every string that comes from outside goes through escaped(), and attributes do so by
// themselves.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace replayeval::reports::html {

// For text and for attribute values in double quotes: & < > " and control characters, which HTML does not know (they
// become U+FFFD, as do bytes that are not UTF-8).
std::string escaped(std::string_view text);

using Attributes = std::vector<std::pair<std::string_view, std::string>>;

std::string element(std::string_view name, const Attributes& attributes, std::string_view inner_markup);
std::string text_element(std::string_view name, const Attributes& attributes, std::string_view text);

// A number for an SVG attribute: at most two decimals.
std::string coordinate(double value);

}  // namespace replayeval::reports::html
