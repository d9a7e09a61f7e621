// Where the numbers come from.
#include <fmt/format.h>

#include "reports/markdown_sections.h"
#include "reports/markdown_table.h"
#include "reports/numbers.h"

namespace replayeval::reports::markdown {
namespace {

// One row a key; what is not a plain value is shown as JSON.
void add_rows(MarkdownTable& table, const std::string& prefix, const nlohmann::json& object) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : fmt::format("{}.{}", prefix, key);
    if (value.is_object()) {
      add_rows(table, name, value);
    } else if (value.is_string()) {
      table.add_row({escaped(name), code(value.get<std::string>())});
    } else {
      table.add_row({escaped(name), code(value.dump())});
    }
  }
}

std::string object_table(const std::string& title, const nlohmann::json& object) {
  MarkdownTable table({title, ""}, {1});
  add_rows(table, "", object);
  return table.empty() ? "" : table.text() + "\n";
}

std::string source_table(const Results& results) {
  MarkdownTable table({"workload", "source", "path", "documents", "bytes", "sha256 of the text"}, {1, 2, 5});
  for (const Workload& workload : results.workloads) {
    if (!workload.data.contains("sources") || !workload.data["sources"].is_array()) continue;
    for (const nlohmann::json& source : workload.data["sources"]) {
      const auto text_of = [&](const char* key) -> std::string {
        if (!source.contains(key)) return "–";
        return source[key].is_number_integer() ? count_text(source[key].get<std::int64_t>())
                                               : code(source.value(key, ""));
      };
      table.add_row({escaped(workload.name), escaped(source.value("name", "?")), text_of("path"), text_of("documents"),
                     text_of("bytes"), text_of("sha256")});
    }
  }
  return table.empty() ? "" : table.text() + "\n";
}

}  // namespace

std::string provenance(const Results& results) {
  return "## Provenance\n\n" + object_table("tool", results.tool) + object_table("environment", results.environment) +
         object_table("checkpoint", results.checkpoint) + object_table("numerics", results.numerics) +
         source_table(results) + "The config as run:\n\n```json\n" + results.config.dump(2) + "\n```\n";
}

}  // namespace replayeval::reports::markdown
