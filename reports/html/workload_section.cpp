#include "reports/html/workload_section.h"

#include <fmt/format.h>

#include <vector>

#include "reports/generation_table.h"
#include "reports/html/blocks.h"
#include "reports/html/markup.h"
#include "reports/sections.h"

namespace replayeval::reports::html {
namespace {

struct Content {
  sections::Section section;
  std::string (*figures)(const Shown&) = nullptr;
  bool fold = true;  // the tables, behind a click: they are long, or a figure says the same
};

std::vector<Content> contents_of(const Workload& workload) {
  using namespace sections;
  if (workload.kind == "recall") return {{recall, recall_figures}, {storage}, {speed}};
  if (workload.kind == "churn") return {{churn, nullptr, false}};
  if (workload.kind == "task") {
    std::vector<Content> contents = {{task, nullptr, false}, {deltas}, {storage}, {speed}};
    if (has_generated(workload)) contents.insert(contents.begin() + 1, {generation, generation_figures});
    return contents;
  }
  if (workload.kind == "generation") return {{generation, generation_figures, false}, {deltas}, {storage}, {speed}};
  return {{summary, nullptr, false},
          {positions, position_figures},
          {divergence, divergence_figures},
          {state_error, state_error_figures},
          {deltas},
          {storage},
          {speed}};
}

std::string content_markup(const Content& content, const Shown& shown) {
  std::string markup;
  std::string figures = content.figures == nullptr ? "" : content.figures(shown);
  for (const Part& part : parts_of(content.section(shown.results, shown.workload))) {
    const std::string tables = blocks(part.blocks);
    if (!content.fold || !figures.empty()) markup += text_element("h3", {}, part.title) + "\n";
    markup += figures;
    if (!content.fold) {
      markup += tables;
    } else {
      markup += folded(figures.empty() ? part.title : "Numbers", tables);
    }
    figures.clear();  // they stand under the first heading
  }
  return markup;
}

}  // namespace

std::string workload_section(const Shown& shown) {
  std::string markup = blocks(sections::data(shown.workload));
  for (const Content& content : contents_of(shown.workload)) markup += content_markup(content, shown);
  return markup;
}

}  // namespace replayeval::reports::html
