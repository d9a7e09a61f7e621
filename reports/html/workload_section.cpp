#include "reports/html/workload_section.h"

#include <fmt/format.h>

#include <cstdint>
#include <variant>
#include <vector>

#include "reports/generation_table.h"
#include "reports/html/blocks.h"
#include "reports/html/markup.h"
#include "reports/sections.h"

namespace replayeval::reports::html {
namespace {

enum class Fold : std::uint8_t {  // behind a click: what is long, or what a figure says, too
  nothing,
  tables,  // the words stay open
  all,
};

struct Content {
  sections::Section section;
  std::string (*figures)(const Shown&) = nullptr;
  Fold fold = Fold::all;
};

std::vector<Content> contents_of(const Workload& workload) {
  using namespace sections;
  if (workload.kind == "recall")
    return {{recall, recall_figures}, {deltas}, {state_error, state_error_figures}, {storage}, {speed}};
  if (workload.kind == "churn") return {{churn, nullptr, Fold::tables}};
  if (workload.kind == "task") {
    std::vector<Content> contents = {
        {task, nullptr, Fold::nothing}, {deltas}, {state_error, state_error_figures}, {storage}, {speed}};
    if (has_generated(workload)) contents.insert(contents.begin() + 1, {generation, generation_figures});
    return contents;
  }
  if (workload.kind == "generation")
    return {{generation, generation_figures, Fold::nothing}, {deltas}, {storage}, {speed}};
  return {{summary, nullptr, Fold::nothing},
          {against, nullptr, Fold::nothing},
          {positions, position_figures},
          {divergence, divergence_figures},
          {state_error, state_error_figures},
          {deltas},
          {storage},
          {speed}};
}

// The words, and then the tables behind a click.
std::string with_tables_folded(const Blocks& all) {
  Blocks words, tables;
  for (const Block& block : all) (std::holds_alternative<Table>(block) ? tables : words).push_back(block);
  return blocks(words) + folded("Numbers", blocks(tables));
}

std::string part_markup(const Part& part, Fold fold, const std::string& figures, int level) {
  const std::string heading = text_element(fmt::format("h{}", level), {}, part.title) + "\n" + figures;
  if (fold == Fold::nothing) return heading + blocks(part.blocks);
  if (fold == Fold::tables) return heading + with_tables_folded(part.blocks);
  return figures.empty() ? folded(part.title, blocks(part.blocks)) : heading + folded("Numbers", blocks(part.blocks));
}

std::string content_markup(const Content& content, const Shown& shown) {
  std::string markup;
  std::string figures = content.figures == nullptr ? "" : content.figures(shown);
  for (const Part& part : parts_of(content.section(shown.results, shown.workload))) {
    markup += part_markup(part, content.fold, figures, shown.heading);
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
