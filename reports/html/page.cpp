#include "reports/html/page.h"

#include "reports/html/markup.h"

namespace replayeval::reports::html {
namespace {

// No inline script or frame may run and nothing may be fetched, whatever a result holds.
constexpr const char* policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

std::string contents_of(const Page& page) {
  std::string items;
  for (const PageSection& section : page.sections)
    if (!section.markup.empty())
      items += element("li", {}, text_element("a", {{"href", "#" + section.id}}, section.title));
  return "<nav aria-label=\"Contents\"><details open><summary>Contents</summary><ol>" + items +
         "</ol></details></nav>\n";
}

}  // namespace

std::string page(const Page& page) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"";
  text += std::string(policy) + "\">\n<link rel=\"icon\" href=\"data:,\">\n" + text_element("title", {}, page.title) +
          "\n<style>\n" + style_text() + "</style>\n</head>\n<body>\n<header>\n" + text_element("h1", {}, page.title) +
          "\n" + page.lead + "</header>\n" + contents_of(page) + "<main>\n";
  for (const PageSection& section : page.sections)
    if (!section.markup.empty())
      text += element("section", {{"id", section.id}},
                      "\n" + text_element("h2", {}, section.title) + "\n" + section.markup) +
              "\n";
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace replayeval::reports::html
