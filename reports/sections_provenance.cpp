// Where the numbers come from.
#include <fmt/format.h>

#include "reports/consistency.h"
#include "reports/numbers.h"
#include "reports/sections.h"

namespace replayeval::reports::sections {
namespace {

// One row a key; what is not a plain value is shown as JSON.
void add_rows(Table& table, const std::string& prefix, const nlohmann::json& object) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : fmt::format("{}.{}", prefix, key);
    if (value.is_object()) {
      add_rows(table, name, value);
    } else if (value.is_string()) {
      table.add_row({name, code(value.get<std::string>())});
    } else {
      table.add_row({name, code(value.dump())});
    }
  }
}

Blocks object_table(const std::string& title, const nlohmann::json& object) {
  Table table({title, ""}, {1});
  add_rows(table, "", object);
  return table.empty() ? Blocks{} : Blocks{table};
}

// Of the harness's samples: the results file that states their task's metrics.
Text judged_by(const nlohmann::json& source) {
  if (!source.contains("results")) return "–";
  return source["results"].is_string() ? code(source["results"].get<std::string>())
                                       : Text("taken from no results file");
}

Blocks source_table(const Results& results) {
  Table table({"workload", "source", "path", "judged by", "documents", "bytes", "sha256 of the text"}, {1, 2, 6});
  for (const Workload& workload : results.workloads) {
    if (!workload.data.contains("sources") || !workload.data["sources"].is_array()) continue;
    for (const nlohmann::json& source : workload.data["sources"]) {
      const auto text_of = [&](const char* key) -> Text {
        if (!source.contains(key)) return "–";
        return source[key].is_number_integer() ? Text(count_text(source[key].get<std::int64_t>()))
                                               : code(source.value(key, ""));
      };
      table.add_row({workload.name, source.value("name", "?"), text_of("path"), judged_by(source), text_of("documents"),
                     text_of("bytes"), text_of("sha256")});
    }
  }
  return table.empty() ? Blocks{} : Blocks{table};
}

}  // namespace

Blocks provenance(const Results& results) {
  Blocks blocks = {Heading{2, "Provenance"}};
  append(blocks, object_table("tool", results.tool));
  append(blocks, object_table("environment", results.environment));
  append(blocks, object_table("checkpoint", results.checkpoint));
  append(blocks, object_table("numerics", results.numerics));
  append(blocks, source_table(results));
  append(blocks, {Paragraph{"The config as run:"}, Verbatim{results.config.dump(2) + "\n", "json"}});
  return blocks;
}

Blocks contradiction(const Results& results) {
  const std::string found = contradiction_in(results, "results.json");
  if (found.empty()) return {};
  return {Paragraph{(strong("Do not rely on this page. ") + found + ".").with(Tint::bad)}};
}

}  // namespace replayeval::reports::sections
