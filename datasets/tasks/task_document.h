// One document of a downstream task: the text that a model is asked about and what counts as right, whatever file it
// comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/tasks/python_json.h"

namespace replayeval::tasks {

// As the harness names them ("output_type").
enum class RequestType { loglikelihood, loglikelihood_rolling, multiple_choice, generate_until };

std::string_view name_of(RequestType type);
std::optional<RequestType> request_type_of(std::string_view name);
inline constexpr std::string_view request_type_names =
    "loglikelihood, loglikelihood_rolling, multiple_choice or generate_until";

struct TextPair {
  std::string context, continuation;
};

// What a generation is asked to be; keys that mean nothing here are left out (and named in `ignored`).
struct GenerationOptions {
  std::vector<std::string> until;  // stop strings, in the order given; end of text is not among them
  std::int64_t max_tokens = 256;
  bool sample = false;  // else greedy
  double temperature = 0;
  std::optional<double> top_p;
  std::optional<std::int64_t> top_k;
  std::vector<std::string> ignored;
};

struct TaskDocument {
  std::int64_t id = 0;
  std::int64_t line = 0;  // of its file, from 1
  RequestType type = RequestType::loglikelihood;

  // loglikelihood: one. multiple_choice: one a choice, then, if and only if acc_mutual_info is asked for, again one a
  // choice with an empty context. loglikelihood_rolling: one, its continuation the whole text. generate_until: one, its
  // context the prompt.
  std::vector<TextPair> requests;

  std::vector<std::string> choices;  // multiple_choice: the texts whose lengths acc_norm divides by
  std::vector<std::size_t> gold;     // multiple_choice: right ones, below choices.size(), at least one

  std::vector<std::string> targets;  // generate_until: accepted answers
  bool several_targets = false;      // a list of them, even if of one
  GenerationOptions generation;
  std::int64_t repeats = 1;  // texts that each generation request wants

  std::int64_t words = 0, bytes = 0;  // loglikelihood_rolling: what word_ and byte_perplexity divide by

  // As the sample's row has them, for rows to be written.
  OrderedJson doc, arguments;
  std::string target, doc_hash, prompt_hash, target_hash;
};

}  // namespace replayeval::tasks
