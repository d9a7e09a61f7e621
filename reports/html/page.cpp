#include "reports/html/page.h"

#include "reports/html/markup.h"

namespace replayeval::reports::html {
namespace {

// No inline script or frame may run and nothing may be fetched, whatever a result holds.
constexpr const char* policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

std::string link_to(const std::string& id, const std::string& title) {
  return text_element("a", {{"href", "#" + id}}, title);
}

std::string entry_of(const PageSection& section) {
  std::string parts;
  for (const FoldedPart& part : section.parts) parts += element("li", {}, link_to(part.id, part.title)) + " ";
  return element(
      "li", {}, link_to(section.id, section.title) + (parts.empty() ? "" : element("ul", {{"class", "parts"}}, parts)));
}

std::string contents_of(const Page& page) {
  std::string items, group, entries;  // entries: of the group
  const auto end_group = [&] {
    if (!group.empty())
      items += element("li", {{"class", "group"}}, text_element("span", {}, group) + element("ul", {}, entries));
    entries.clear();
  };
  for (const PageSection& section : page.sections) {
    if (section.markup.empty()) continue;
    if (section.group != group) {
      end_group();
      group = section.group;
    }
    (group.empty() ? items : entries) += entry_of(section);
  }
  end_group();
  return "<nav aria-label=\"Contents\"><details open><summary>Contents</summary><ul>" + items +
         "</ul></details></nav>\n";
}

// The id stands inside of what is folded: browsers open it for a link that leads there.
std::string folded_part(const FoldedPart& part) {
  const std::string note = part.note.empty() ? "" : " " + text_element("span", {{"class", "note"}}, part.note);
  return "<details class=\"part\">" + element("summary", {}, text_element("h3", {}, part.title) + note) + "\n" +
         element("div", {{"id", part.id}}, "\n" + part.markup) + "</details>\n";
}

std::string section_of(const PageSection& section) {
  std::string markup = "\n" + text_element("h2", {}, section.title) + "\n" + section.markup;
  for (const FoldedPart& part : section.parts) markup += folded_part(part);
  return element("section", {{"id", section.id}}, markup) + "\n";
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
    if (!section.markup.empty()) text += section_of(section);
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace replayeval::reports::html
