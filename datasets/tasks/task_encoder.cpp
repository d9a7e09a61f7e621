#include "datasets/tasks/task_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "datasets/one_line.h"
#include "datasets/tasks/python_text.h"

namespace replayeval::tasks {
namespace {

using datasets::DataError;
using Ids = std::vector<std::int32_t>;

// As decoded text shows the token; where it shows none (sentencepiece's control tokens), as the vocabulary spells it.
std::string spelling(const datasets::Tokenizer& tokenizer, std::int32_t id) {
  const std::array<std::int32_t, 1> ids = {id};
  std::string text = tokenizer.decode(ids, datasets::SpecialTokens::keep);
  return text.empty() ? tokenizer.piece(id) : text;
}

void keep_last(Ids& ids, std::size_t count) {
  if (ids.size() > count) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(count));
}

}  // namespace

TaskEncoder::TaskEncoder(std::shared_ptr<const datasets::Tokenizer> tokenizer, EncoderOptions options)
    : tokenizer_(std::move(tokenizer)), options_(std::move(options)) {
  if (options_.max_length < 1)
    throw DataError(fmt::format("max_length: found {}, expected 1 or more", options_.max_length));
  const auto bos = tokenizer_->bos_id(), eos = tokenizer_->eos_id();
  const auto prefix = options_.prefix_token ? options_.prefix_token : bos ? bos : eos;
  if (!prefix)
    throw DataError(tokenizer_->file().string() +
                    ": has neither bos nor eos; expected one, or a prefix token in the config, for empty contexts");
  prefix_ = *prefix;
  prefix_text_ = spelling(*tokenizer_, prefix_);
  if (bos) bos_text_ = spelling(*tokenizer_, *bos);
  if (eos) eos_text_ = spelling(*tokenizer_, *eos);
  if (options_.add_bos == true && !bos)
    throw DataError(tokenizer_->file().string() + ": has no bos; expected one, as add_bos is true");
}

// Special tokens come as the files say, unless the text begins with `bos` as text already.
Ids TaskEncoder::encode_text(const std::string& text, const std::string& bos) const {
  Ids ids = tokenizer_->encode(text);
  if ((!bos.empty() && text.starts_with(bos)) || options_.add_bos == false) return ids;
  ids = tokenizer_->add_special_tokens(std::move(ids));
  if (options_.add_bos == true && (ids.empty() || ids.front() != *tokenizer_->bos_id()))
    ids.insert(ids.begin(), *tokenizer_->bos_id());
  return ids;
}

ScoringRequest TaskEncoder::with_empty_context(const std::string& continuation) const {
  ScoringRequest request;
  request.continuation = tokenizer_->encode(continuation);
  if (!request.continuation.empty() && request.continuation.front() == prefix_)
    request.continuation.erase(request.continuation.begin());
  request.context = {prefix_};
  return request;
}

ScoringRequest TaskEncoder::encode_pair(const TextPair& pair) {
  if (pair.context.empty()) return with_empty_context(pair.continuation);
  const std::string context = pair.context.substr(0, size_without_trailing_space(pair.context));
  const Ids whole = encode_text(pair.context + pair.continuation, prefix_text_);
  ScoringRequest request;
  request.context = encode_text(context, prefix_text_);
  if (request.context.empty()) {
    ++counts_.bare_contexts;
    return with_empty_context(pair.context + pair.continuation);
  }
  const std::size_t cut = std::min(request.context.size(), whole.size());
  if (!std::equal(request.context.begin(), request.context.begin() + static_cast<std::ptrdiff_t>(cut), whole.begin()))
    ++counts_.joined_tokens;
  request.continuation.assign(whole.begin() + static_cast<std::ptrdiff_t>(cut), whole.end());
  return request;
}

// (context + continuation)[-(max_length + 1):], parted where the continuation begins, or behind its first token.
void TaskEncoder::fit(ScoringRequest& request) {
  const auto length = static_cast<std::size_t>(options_.max_length);
  if (request.context.size() + request.continuation.size() <= length + 1) return;
  ++counts_.cut_contexts;
  if (request.continuation.size() > length) {
    ++counts_.cut_continuations;
    request.context = {*(request.continuation.end() - static_cast<std::ptrdiff_t>(length) - 1)};
    keep_last(request.continuation, length);
    return;
  }
  keep_last(request.context, length + 1 - request.continuation.size());
}

GenerationRequest TaskEncoder::encode_generation(const TaskDocument& document, const std::string& place) {
  const GenerationOptions& options = document.generation;
  GenerationRequest request;
  request.max_tokens = options.max_tokens;
  request.until = options.until;
  if (!eos_text_.empty() && std::find(request.until.begin(), request.until.end(), eos_text_) == request.until.end())
    request.until.push_back(eos_text_);
  request.sample = options.sample;
  request.temperature = options.temperature;
  request.top_p = options.top_p;
  request.top_k = options.top_k;
  if (options.max_tokens >= options_.max_length)
    throw DataError(fmt::format("{}: max_gen_toks: found {}, expected less than the checkpoint's max_length {}", place,
                                options.max_tokens, options_.max_length));
  request.prompt = encode_text(document.requests[0].context, bos_text_);
  const auto room = static_cast<std::size_t>(options_.max_length - options.max_tokens);
  if (request.prompt.size() > room) ++counts_.cut_contexts;
  keep_last(request.prompt, room);
  if (request.prompt.empty()) {
    ++counts_.bare_contexts;
    request.prompt = {prefix_};
  }
  if (!options.ignored.empty()) ++counts_.ignored_generation_keys;
  return request;
}

EncodedDocument TaskEncoder::encode(const TaskDocument& document, const std::string& place) {
  EncodedDocument encoded;
  try {
    if (document.type == RequestType::generate_until) {
      encoded.generation = encode_generation(document, place);
    } else if (document.type == RequestType::loglikelihood_rolling) {
      const Ids tokens = encode_text(document.requests[0].continuation, prefix_text_);
      encoded.scoring = rolling_windows(tokens, prefix_, options_.max_length);
    } else {
      for (std::size_t i = 0; i < document.requests.size(); ++i) {
        ScoringRequest request = encode_pair(document.requests[i]);
        if (request.continuation.empty())
          throw DataError(fmt::format(
              "{}: request {}: no token is left for the continuation '{}'{}; expected one or "
              "more to score",
              place, i, datasets::one_line(document.requests[i].continuation),
              document.requests[i].continuation.empty() ? "" : ", which joins the last one of the context"));
        fit(request);
        encoded.scoring.push_back(std::move(request));
      }
    }
  } catch (const DataError& error) {
    const std::string_view what = error.what();
    if (what.starts_with(place)) throw;
    throw DataError(place + ": " + std::string(what));
  }
  ++counts_.documents;
  counts_.requests += static_cast<std::int64_t>(document.requests.size());
  counts_.scoring_requests += static_cast<std::int64_t>(encoded.scoring.size());
  for (const ScoringRequest& request : encoded.scoring)
    counts_.scored_tokens += static_cast<std::int64_t>(request.continuation.size());
  if (document.type != RequestType::loglikelihood_rolling &&
      options_.chat_template.is_missing_in(document.requests[0].context))
    ++counts_.without_chat_template;
  return encoded;
}

std::vector<std::string> TaskEncoder::warnings() const {
  std::vector<std::string> warnings;
  const auto warn = [&](std::int64_t count, std::string_view of, std::string_view text) {
    if (count > 0) warnings.push_back(fmt::format("{} of {} {}", count, of, text));
  };
  const std::string requests = fmt::format("{} requests", counts_.requests);
  const std::string documents = fmt::format("{} documents", counts_.documents);
  warn(counts_.cut_continuations, requests,
       fmt::format("have a continuation of more than {} tokens: only its end is scored", options_.max_length));
  warn(counts_.cut_contexts, requests, fmt::format("lose tokens on the left to fit into {}", options_.max_length));
  warn(counts_.joined_tokens, requests, "have a token that spans the end of the context: the cut lies elsewhere");
  warn(counts_.bare_contexts, requests,
       "have a context without a token of its own: conditioned on the prefix token (the harness stops there)");
  warn(counts_.without_chat_template, documents,
       "lack the control tokens of the checkpoint's chat template: was lm_eval run with --apply_chat_template?");
  warn(counts_.ignored_generation_keys, documents, "have generation arguments that do not apply here");
  return warnings;
}

std::string TaskEncoder::text_of(std::span<const std::int32_t> generated, const GenerationRequest& request) const {
  return cut_at_stops(tokenizer_->decode(generated, datasets::SpecialTokens::skip), request.until);
}

std::string cut_at_stops(std::string text, std::span<const std::string> until) {
  for (const std::string& stop : until)
    if (const std::size_t at = stop.empty() ? std::string::npos : text.find(stop); at != std::string::npos)
      text.resize(at);
  return text;
}

bool holds_stop(std::string_view text, std::span<const std::string> until) {
  return std::any_of(until.begin(), until.end(), [&](const std::string& stop) {
    return !stop.empty() && text.find(stop) != std::string_view::npos;
  });
}

}  // namespace replayeval::tasks
