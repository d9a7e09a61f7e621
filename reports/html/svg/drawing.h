// One SVG that stands in an HTML page: responsive (a view box, no size), drawn in the page's colours through classes,
// and readable by those who cannot see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/html/markup.h"

namespace replayeval::reports::html::svg {

// Drawings are made for the width of a phone and are scaled up a little on wider screens, so that their text stays as
// large as the page's everywhere.
inline constexpr double width = 360.0;
inline constexpr double text_height = 11.0;     // font size
inline constexpr double character_width = 7.0;  // of that font, generously
inline constexpr double line_height = 16.0;

struct Title {
  std::string id;           // unique in the page
  std::string title;        // what is shown
  std::string description;  // what there is to see, in a sentence or two
};

enum class Anchor : std::uint8_t { start, middle, end };

struct Point {
  double x = 0.0, y = 0.0;
};

class Drawing {
 public:
  explicit Drawing(Title title) : title_(std::move(title)) {}

  void line(std::string_view css_class, Point from, Point to);
  void rectangle(std::string_view css_class, Point corner, double wide, double high);
  void path(std::string_view css_class, const std::string& commands);
  void text(std::string_view css_class, Point at, Anchor anchor, std::string_view text);
  void markup(const std::string& svg) { body_ += svg; }

  std::string finished(double height) const;  // the <svg> element

 private:
  Title title_;
  std::string body_;
};

// What tells arms apart: colour, mark and dash, each a class "s0" … "s6" and their like in the page's style.
std::string series_class(std::size_t arm);
// A mark of about 8 units around `centre`: circle, square, triangle, ..., by arm.
std::string mark_of(std::size_t arm, Point centre);

// As much of `text` as fits `room`, with "…" where some is lost.
std::string fitted(const std::string& text, double room);
double width_of(std::string_view text);

// Labels along a line, at rising places.
struct Label {
  double at = 0.0;  // its middle
  std::string text;
};
// Every n-th of them, counted from the last, with the smallest n that leaves room between them; pushed inwards where
// they would reach beyond the drawing.
std::vector<Label> with_room(const std::vector<Label>& labels);

// A row a name: its mark and the name. Returns the height.
double draw_legend(Drawing& drawing, double top, const std::vector<std::pair<std::size_t, std::string>>& names);

}  // namespace replayeval::reports::html::svg
