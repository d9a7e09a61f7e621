// A whole page in one file: head, style, contents, sections. It asks the network for nothing and runs no script.
#pragma once

#include <string>
#include <vector>

namespace replayeval::reports::html {

// A part of a section that stands behind a click; a link to its id opens it.
struct FoldedPart {
  std::string id;      // unique in the page
  std::string title;   // plain text
  std::string note;    // plain text beside the title, may be empty
  std::string markup;  // headings in it begin at level 4
};

struct PageSection {
  std::string id;                      // unique in the page
  std::string title;                   // plain text
  std::string markup;                  // a section without any is left out
  std::string group = {};              // sections of one group stand together in the contents, under its name
  std::vector<FoldedPart> parts = {};  // behind the markup; the contents name them, too
};

struct Page {
  std::string title;
  std::string lead;  // markup under the title: the verdict
  std::vector<PageSection> sections;
};

std::string page(const Page& page);

const char* style_text();  // style.css, which travels in the program

}  // namespace replayeval::reports::html
