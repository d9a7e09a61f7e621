// Results to and from results.json. Every writer and every reader checks against the schema.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "reports/results.h"

namespace replayeval::reports {

// One line that names the file, the place in it (a JSON pointer) and what was expected.
class ResultsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws ResultsError naming the JSON pointer of a number that is not finite, or of what the schema refuses.
nlohmann::json to_json(const Results& results);
// Strict: unknown keys, missing keys, wrong types and other schema versions throw ResultsError. `place` goes before
// messages.
Results results_from_json(const nlohmann::json& object, const std::string& place = "results");

// Writes all or nothing: a temporary file beside `file`, flushed to the disk, then renamed. Throws ResultsError naming
// the file when the folder cannot be written or the disk is full; what stood there before stays.
void save_results(const Results& results, const std::filesystem::path& file);
// `path` is a results.json or a folder that holds one.
Results load_results(const std::filesystem::path& path);

// Checks against reports/schema/results.schema.json, which is compiled in. Throws ResultsError with the first fault.
void validate_results(const nlohmann::json& results, const std::string& place = "results");

struct NamedResults {
  std::string name;  // for messages: the path that the user gave
  Results results;
};

// Whether these could be merged: one config but for its name, checkpoint, numerics, arms and baseline, no workload in
// both.
bool are_parts_of_one_run(const Results& first, const Results& other);

// Parts of one config (run --only), workloads in the order of the config. Throws ResultsError naming the two parts when
// config, checkpoint, numerics, arms or baseline differ, or when both hold one workload.
Results merge_results(const std::vector<NamedResults>& parts);

}  // namespace replayeval::reports
