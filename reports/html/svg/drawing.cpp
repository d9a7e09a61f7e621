#include "reports/html/svg/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/text_table.h"

namespace replayeval::reports::html::svg {
namespace {

constexpr std::size_t colours = 7;  // classes s0 … s6 of style.css

const char* anchor_name(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "start";
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      break;
  }
  return "end";
}

// Corners of the marks around the origin; no corners: a circle.
constexpr std::array<std::string_view, colours> mark_shapes{
    "",
    "M{0:g} {1:g}m-3.6 -3.6h7.2v7.2h-7.2z",
    "M{0:g} {1:g}m0 -4.6l4.4 7.8h-8.8z",
    "M{0:g} {1:g}m0 -5l4.6 5l-4.6 5l-4.6 -5z",
    "M{0:g} {1:g}m0 4.6l4.4 -7.8h-8.8z",
    "M{0:g} {1:g}m-1.5 -4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "M{0:g} {1:g}m-4.8 -1l4.8 -3.8l4.8 3.8l-2 5.2h-5.6z",
};

}  // namespace

void Drawing::line(std::string_view css_class, Point from, Point to) {
  body_ += element("line",
                   {{"class", std::string(css_class)},
                    {"x1", coordinate(from.x)},
                    {"y1", coordinate(from.y)},
                    {"x2", coordinate(to.x)},
                    {"y2", coordinate(to.y)}},
                   "");
}

void Drawing::rectangle(std::string_view css_class, Point corner, double wide, double high) {
  body_ += element("rect",
                   {{"class", std::string(css_class)},
                    {"x", coordinate(corner.x)},
                    {"y", coordinate(corner.y)},
                    {"width", coordinate(wide)},
                    {"height", coordinate(high)}},
                   "");
}

void Drawing::path(std::string_view css_class, const std::string& commands) {
  body_ += element("path", {{"class", std::string(css_class)}, {"d", commands}}, "");
}

void Drawing::text(std::string_view css_class, Point at, Anchor anchor, std::string_view text) {
  body_ += text_element("text",
                        {{"class", std::string(css_class)},
                         {"x", coordinate(at.x)},
                         {"y", coordinate(at.y)},
                         {"text-anchor", anchor_name(anchor)}},
                        text);
}

std::string Drawing::finished(double height) const {
  const std::string title_id = title_.id + "-title", description_id = title_.id + "-desc";
  return element("svg",
                 {{"id", title_.id},
                  {"class", "plot"},
                  {"viewBox", fmt::format("0 0 {} {}", coordinate(width), coordinate(height))},
                  {"role", "img"},
                  {"aria-labelledby", title_id + " " + description_id}},
                 text_element("title", {{"id", title_id}}, title_.title) +
                     text_element("desc", {{"id", description_id}}, title_.description) + body_) +
         "\n";
}

std::string series_class(std::size_t arm) { return fmt::format("s{}", arm % colours); }

std::string mark_of(std::size_t arm, Point centre) {
  // Arms that share a colour differ in their marks.
  const std::string_view shape = mark_shapes.at((arm + arm / colours) % mark_shapes.size());
  const std::string css_class = "mark " + series_class(arm);
  if (shape.empty())
    return element("circle",
                   {{"class", css_class}, {"cx", coordinate(centre.x)}, {"cy", coordinate(centre.y)}, {"r", "4"}}, "");
  const double x = std::round(centre.x * 100.0) / 100.0, y = std::round(centre.y * 100.0) / 100.0;
  return element("path", {{"class", css_class}, {"d", fmt::format(fmt::runtime(shape), x, y)}}, "");
}

double width_of(std::string_view text) {
  return character_width * static_cast<double>(display_width(std::string(text)));
}

std::string fitted(const std::string& text, double room) {
  const auto most = static_cast<std::size_t>(std::max(1.0, std::floor(room / character_width)));
  if (display_width(text) <= most) return text;
  std::string kept;
  std::size_t characters = 0;
  for (const char byte : text) {
    const bool begins_character = (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
    if (begins_character && ++characters == most) break;
    kept += byte;
  }
  return kept + "…";
}

std::vector<Label> with_room(const std::vector<Label>& labels) {
  constexpr double gap = 4.0;
  for (std::size_t every = 1; every <= labels.size(); ++every) {
    std::vector<Label> kept;
    bool fits = true;
    double before = -gap;
    for (std::size_t i = (labels.size() - 1) % every; i < labels.size(); i += every) {
      const double half = width_of(labels[i].text) / 2.0;
      const double middle = std::clamp(labels[i].at, half, std::max(half, width - half));
      fits = fits && middle - half >= before + gap;
      before = middle + half;
      kept.push_back({middle, labels[i].text});
    }
    if (fits) return kept;
  }
  return {};
}

double draw_legend(Drawing& drawing, double top, const std::vector<std::pair<std::size_t, std::string>>& names) {
  constexpr double text_left = 20.0;
  const bool two_columns = names.size() > 1 && std::all_of(names.begin(), names.end(), [&](const auto& name) {
                             return text_left + width_of(name.second) <= width / 2.0 - 4.0;
                           });
  const std::size_t columns = two_columns ? 2 : 1;
  drawing.markup("<g class=\"legend\">");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double left = static_cast<double>(i % columns) * width / 2.0;
    const double middle = top + line_height * (static_cast<double>(i / columns) + 0.5);
    drawing.markup(mark_of(names[i].first, {left + 9.0, middle}));
    drawing.text("name", {left + text_left, middle + 4.0}, Anchor::start,
                 fitted(names[i].second, width / static_cast<double>(columns) - text_left));
  }
  drawing.markup("</g>");
  return line_height * static_cast<double>((names.size() + columns - 1) / columns);
}

}  // namespace replayeval::reports::html::svg
