#include "eval/comparator/tasks/task_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "datasets/tasks/max_length.h"

namespace replayeval {
namespace {

Continuation continuation_of(const tasks::ScoringRequest& request) {
  Continuation made{request.context, static_cast<std::int64_t>(request.continuation.size())};
  made.tokens.insert(made.tokens.end(), request.continuation.begin(), request.continuation.end());
  return made;
}

}  // namespace

TaskRequests encode_task(tasks::TaskSource source, const std::string& file,
                         std::shared_ptr<const datasets::Tokenizer> tokenizer,
                         const std::filesystem::path& checkpoint_folder, std::int64_t max_positions) {
  tasks::EncoderOptions options;
  options.max_length = std::min(tasks::max_length_of(checkpoint_folder), max_positions);
  options.chat_template = tasks::ChatTemplate::read(checkpoint_folder);
  tasks::TaskEncoder encoder(std::move(tokenizer), std::move(options));
  TaskRequests all;
  all.first.push_back(0);
  source.rewind();
  while (std::optional<tasks::TaskDocument> document = source.next()) {
    const std::string place = fmt::format("{}: line {}", file, document->line);
    const tasks::EncodedDocument encoded = encoder.encode(*document, place);
    for (const tasks::ScoringRequest& request : encoded.scoring) all.requests.push_back(continuation_of(request));
    if (encoded.generation) all.generations.push_back(*encoded.generation);
    all.first.push_back(all.requests.size());
    all.documents.push_back(*std::move(document));
  }
  all.counts = encoder.counts();
  all.warnings = encoder.warnings();
  return all;
}

nlohmann::json to_json(const tasks::EncodingCounts& counts) {
  return {{"cut_contexts", counts.cut_contexts},
          {"cut_continuations", counts.cut_continuations},
          {"joined_tokens", counts.joined_tokens},
          {"bare_contexts", counts.bare_contexts},
          {"without_chat_template", counts.without_chat_template},
          {"ignored_generation_keys", counts.ignored_generation_keys}};
}

}  // namespace replayeval
