// A whole page in one file: head, style, contents, sections. It asks the network for nothing and runs no script.
#pragma once

#include <string>
#include <vector>

namespace replayeval::reports::html {

struct PageSection {
  std::string id;      // unique in the page
  std::string title;   // plain text
  std::string markup;  // a section without any is left out
};

struct Page {
  std::string title;
  std::string lead;  // markup under the title: the verdict
  std::vector<PageSection> sections;
};

std::string page(const Page& page);

const char* style_text();  // style.css, which travels in the program

}  // namespace replayeval::reports::html
