#include "datasets/tasks/harness_results.h"

#include <fmt/format.h>

#include "datasets/error.h"
#include "datasets/regular_file.h"
#include "datasets/tasks/json_member.h"
#include "datasets/text_source.h"

namespace replayeval::tasks {

std::optional<SamplesName> parse_samples_name(const std::filesystem::path& file) {
  constexpr std::string_view prefix = "samples_";
  const std::string stem = file.stem().string();
  const std::size_t last = stem.rfind('_');
  if (!stem.starts_with(prefix) || last == std::string::npos || last <= prefix.size()) return std::nullopt;
  return SamplesName{stem.substr(prefix.size(), last - prefix.size()), stem.substr(last + 1)};
}

std::filesystem::path results_beside(const std::filesystem::path& samples, const SamplesName& name) {
  return samples.parent_path() / fmt::format("results_{}.json", name.date);
}

std::optional<HarnessSettings> read_harness_settings(const std::filesystem::path& samples,
                                                     const std::filesystem::path& results) {
  const auto name = parse_samples_name(samples);
  std::filesystem::path file = results;
  if (file.empty()) {
    if (!name) return std::nullopt;
    file = results_beside(samples, *name);
    if (!std::filesystem::exists(file)) return std::nullopt;
  }
  datasets::require_regular_file(file);
  const std::string place = file.string();
  const OrderedJson document = read_python_json(datasets::read_text_file(file), place);
  const OrderedJson* stated = find_member(document, "configs", place);
  if (stated == nullptr)
    throw datasets::DataError(fmt::format("{}: {}; expected the harness's results file, which holds 'configs'", place,
                                          document.contains("schema_version") && document.contains("workloads")
                                              ? "is a results file of replayeval"
                                              : "'configs' is missing or null"));
  const OrderedJson& configs = *stated;
  const std::string at = place + ": configs";
  if (name) {
    if (const OrderedJson* config = find_member(configs, name->task, at)) {
      TaskSettings settings = settings_of_config(*config, at + "." + name->task);
      settings.task = name->task;
      return HarnessSettings{std::move(settings), file};
    }
  } else if (configs.is_object() && configs.size() == 1) {
    return HarnessSettings{settings_of_config(configs.begin().value(), at + "." + configs.begin().key()), file};
  }
  if (results.empty()) return std::nullopt;
  throw datasets::DataError(fmt::format("{}: found no config of the task of {}; expected one named '{}'", at,
                                        samples.filename().string(), name ? name->task : "TASK"));
}

}  // namespace replayeval::tasks
