#include "reports/html/figure.h"

#include "reports/html/blocks.h"
#include "reports/html/markup.h"

namespace replayeval::reports::html {

std::string figure(const Figure& figure) {
  if (figure.svg.empty()) return "";
  std::string caption = text_element("strong", {}, figure.title);
  if (!figure.caption.empty()) caption += text_element("span", {}, figure.caption);
  return "<figure>" + element("figcaption", {}, caption) + "\n" + figure.svg + folded("Data", figure.data) +
         "</figure>\n";
}

std::string row_figures(const svg::RowPlot& plot, const std::string& caption) {
  std::string figures;
  for (const svg::RowPlot& sheet : svg::sheets_of(plot))
    figures += figure({svg::row_plot(sheet), sheet.title.title, caption, ""});
  return figures;
}

std::string side_by_side(const std::string& figures) {
  return figures.empty() ? "" : "<div class=\"figures\">\n" + figures + "</div>\n";
}

}  // namespace replayeval::reports::html
