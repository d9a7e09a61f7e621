// A task's documents with the token ids that the model is asked about.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "datasets/tasks/task_document.h"
#include "datasets/tasks/task_encoder.h"
#include "datasets/tasks/task_source.h"
#include "datasets/tokenizer.h"
#include "eval/comparator/tasks/continuation_scorer.h"

namespace replayeval {

// Documents in the order of their file; those of document d are requests first[d] … first[d + 1].
struct TaskRequests {
  std::vector<tasks::TaskDocument> documents;
  std::vector<Continuation> requests;
  std::vector<std::size_t> first;                     // documents.size() + 1
  std::vector<tasks::GenerationRequest> generations;  // of generate_until, one a document; then there are no requests
  tasks::EncodingCounts counts;
  std::vector<std::string> warnings;  // what was cut, joined or left as it is
};

// `file`: the source's, for messages. `max_positions`: of the model, where the checkpoint's files promise more. Throws
// DataError naming file and line.
TaskRequests encode_task(tasks::TaskSource source, const std::string& file,
                         std::shared_ptr<const datasets::Tokenizer> tokenizer,
                         const std::filesystem::path& checkpoint_folder, std::int64_t max_positions);

nlohmann::json to_json(const tasks::EncodingCounts& counts);

}  // namespace replayeval
