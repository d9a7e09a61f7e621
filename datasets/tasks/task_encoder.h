// Token ids of a document's requests, as the harness's `hf` model makes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/tasks/chat_template.h"
#include "datasets/tasks/rolling_windows.h"
#include "datasets/tasks/task_document.h"
#include "datasets/tokenizer.h"

namespace replayeval::tasks {

struct EncoderOptions {
  std::int64_t max_length = 2048;            // see max_length_of
  std::optional<std::int32_t> prefix_token;  // what an empty context becomes; default: bos, else eos
  // add_bos_token of the harness's `hf` model: true puts bos before every text, false nothing; default: as the
  // tokenizer's files say.
  std::optional<bool> add_bos;
  ChatTemplate chat_template;
};

struct GenerationRequest {
  std::vector<std::int32_t> prompt;  // not empty; prompt and max_tokens fit into max_length
  std::int64_t max_tokens = 0;
  std::vector<std::string> until;  // stop strings in the order that texts are cut by, the spelling of eos last
  bool sample = false;             // else greedy
  double temperature = 0;          // > 0 where it samples
  std::optional<double> top_p;
  std::optional<std::int64_t> top_k;
};

struct EncodedDocument {
  // loglikelihood, multiple_choice: one for each of TaskDocument::requests. loglikelihood_rolling: windows, whose
  // log-likelihoods add up; none for an empty text.
  std::vector<ScoringRequest> scoring;
  std::optional<GenerationRequest> generation;  // generate_until; wanted TaskDocument::repeats times
};

// What happened to requests on the way, for warnings and results.
struct EncodingCounts {
  std::int64_t documents = 0, requests = 0, scoring_requests = 0;
  std::int64_t scored_tokens = 0;            // in continuations
  std::int64_t cut_contexts = 0;             // lost tokens on the left
  std::int64_t cut_continuations = 0;        // longer than max_length: only the last max_length tokens are scored
  std::int64_t joined_tokens = 0;            // a token spans the end of the context: the cut is elsewhere than meant
  std::int64_t bare_contexts = 0;            // white space alone, without bos: conditioned on the prefix token instead
  std::int64_t without_chat_template = 0;    // documents whose prompt lacks the checkpoint's control tokens
  std::int64_t ignored_generation_keys = 0;  // documents whose gen_kwargs ask for something that does not apply
};

class TaskEncoder {
 public:
  // Throws DataError if a prefix token is needed and the tokenizer has neither bos nor eos.
  TaskEncoder(std::shared_ptr<const datasets::Tokenizer> tokenizer, EncoderOptions options);

  // Throws DataError, `place` (say, "FILE: line N") first: a continuation without tokens, text that is not UTF-8,
  // max_gen_toks that leaves no room for a prompt. Counts what it sees.
  EncodedDocument encode(const TaskDocument& document, const std::string& place);

  const EncodingCounts& counts() const { return counts_; }
  // One sentence for each kind of thing that was counted, with its number.
  std::vector<std::string> warnings() const;
  const EncoderOptions& options() const { return options_; }
  std::int32_t prefix_token() const { return prefix_; }

  // What the harness makes of generated ids: special tokens left out, cut at the first stop string of each in turn.
  std::string text_of(std::span<const std::int32_t> generated, const GenerationRequest& request) const;

 private:
  std::vector<std::int32_t> encode_text(const std::string& text, const std::string& bos) const;
  ScoringRequest encode_pair(const TextPair& pair);
  ScoringRequest with_empty_context(const std::string& continuation) const;
  void fit(ScoringRequest& request);
  GenerationRequest encode_generation(const TaskDocument& document, const std::string& place);

  std::shared_ptr<const datasets::Tokenizer> tokenizer_;
  EncoderOptions options_;
  EncodingCounts counts_;
  std::int32_t prefix_ = -1;
  std::string prefix_text_, bos_text_, eos_text_;  // as decoded text shows them
};

// `text` up to the first place where one of the stop strings stands, for each in turn. Empty ones do not count.
std::string cut_at_stops(std::string text, std::span<const std::string> until);
// Whether a stop string stands in `text`: generation may end.
bool holds_stop(std::string_view text, std::span<const std::string> until);

}  // namespace replayeval::tasks
