#include "eval/comparator/generation/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "datasets/sha256.h"
#include "datasets/tasks/json_member.h"
#include "datasets/tasks/jsonl_file.h"
#include "datasets/tasks/max_length.h"
#include "datasets/tasks/task_encoder.h"

namespace replayeval {
namespace {

using datasets::DataError;
using TokenizerPointer = std::shared_ptr<const datasets::Tokenizer>;

std::int64_t count_of(const PromptConfig& config) {
  return config.count.value_or(std::numeric_limits<std::int64_t>::max());
}

// As many as the config counts on, or any number without a count.
void check_count(const PromptConfig& config, std::int64_t found, const std::string& place, const std::string& what) {
  if (found < config.count.value_or(0))
    throw DataError(
        fmt::format("{}: found {}, expected at least the {} {} of count", place, found, *config.count, what));
}

void check_room(const PromptItem& item, std::int64_t max_tokens, std::int64_t positions, const std::string& place) {
  if (item.tokens.empty()) throw DataError(place + ": an empty prompt; expected at least one token");
  const auto tokens = static_cast<std::int64_t>(item.tokens.size());
  if (tokens + max_tokens > positions)
    throw DataError(
        fmt::format("{}: a prompt of {} tokens and max_tokens {}; expected at most the model's {} positions", place,
                    tokens, max_tokens, positions));
}

PromptItem row_prompt(const tasks::OrderedJson& row, const std::string& field, const datasets::Tokenizer& tokenizer,
                      std::int64_t vocab_size, const std::string& place) {
  const std::string at = place + ": " + field;
  const tasks::OrderedJson& value = tasks::member(row, field, place);
  PromptItem item;
  item.doc = row;
  if (value.is_array()) {
    for (const tasks::OrderedJson& id : value)
      item.tokens.push_back(static_cast<std::int32_t>(tasks::as_integer(id, at, 0, vocab_size - 1)));
    item.text = tokenizer.decode(item.tokens);
  } else if (value.is_string()) {
    item.text = value.get<std::string>();
    item.tokens = tokenizer.add_special_tokens(tokenizer.encode(item.text));
  } else {
    tasks::refuse(value, at, "a text or a list of token ids");
  }
  return item;
}

Prompts read_jsonl(const GenerationConfig& config, const TokenizerPointer& tokenizer, const PromptBounds& bounds) {
  const PromptConfig& from = config.prompts;
  const std::filesystem::path path = from.root / from.path;
  tasks::JsonlFile file(path);
  Prompts prompts;
  const std::string sha256 = datasets::sha256_file(path);
  if (!from.sha256.empty() && from.sha256 != sha256)
    throw DataError(fmt::format("{}: sha256 is {}, expected {}", path.string(), sha256, from.sha256));
  std::string line;
  while (static_cast<std::int64_t>(prompts.items.size()) < count_of(from) && file.next(line)) {
    const std::string place = file.place();
    const tasks::OrderedJson row = tasks::read_json_row(line, place);
    prompts.items.push_back(row_prompt(row, from.field, *tokenizer, bounds.vocab_size, place));
    check_room(prompts.items.back(), config.max_tokens, bounds.max_positions, place + ": " + from.field);
  }
  if (prompts.items.empty()) throw DataError(path.string() + ": holds no prompt; expected one JSON object a line");
  check_count(from, static_cast<std::int64_t>(prompts.items.size()), path.string(), "prompts");
  prompts.description = {{"name", path.stem().string()}, {"form", "jsonl"}, {"path", from.path}, {"sha256", sha256}};
  return prompts;
}

// Every piece of `tokens` tokens of every document, in order; what is left at a document's end is none.
std::vector<PromptItem> pieces_of(datasets::TextSource& source, std::int64_t tokens,
                                  const datasets::Tokenizer& tokenizer) {
  std::vector<PromptItem> pieces;
  while (const auto document = source.next()) {
    const std::vector<std::int32_t> ids = tokenizer.encode(document->text);
    const auto size = static_cast<std::int64_t>(ids.size());
    for (std::int64_t begin = 0; begin + tokens <= size; begin += tokens) {
      PromptItem& piece = pieces.emplace_back();
      piece.tokens.assign(ids.begin() + begin, ids.begin() + begin + tokens);
      piece.doc = {{"source", document->source}, {"document", document->id}, {"first_token", begin}};
    }
  }
  return pieces;
}

Prompts read_text(const GenerationConfig& config, const TokenizerPointer& tokenizer, const PromptBounds& bounds) {
  const PromptConfig& from = config.prompts;
  datasets::TextSource source = datasets::TextSource::open(from.text, from.root);
  std::vector<PromptItem> pieces = pieces_of(source, from.tokens, *tokenizer);
  const auto found = static_cast<std::int64_t>(pieces.size()), wanted = *from.count;
  check_count(from, found, from.text.path, fmt::format("pieces of {} tokens", from.tokens));
  Prompts prompts;
  for (std::int64_t i = 0; i < wanted; ++i) {
    PromptItem& piece = prompts.items.emplace_back(std::move(pieces[static_cast<std::size_t>(i * found / wanted)]));
    piece.text = tokenizer->decode(piece.tokens);
    if (from.bos && tokenizer->bos_id()) piece.tokens.insert(piece.tokens.begin(), *tokenizer->bos_id());
  }
  check_room(prompts.items.front(), config.max_tokens, bounds.max_positions, from.text.path);
  prompts.description = source.describe();
  prompts.description["form"] = "text";
  prompts.description["tokens"] = from.tokens;
  return prompts;
}

Prompts read_samples(const GenerationConfig& config, const TokenizerPointer& tokenizer, const PromptBounds& bounds) {
  const PromptConfig& from = config.prompts;
  tasks::TaskSource source = tasks::TaskSource::open(from.samples, from.root);
  if (source.settings().type != tasks::RequestType::generate_until)
    throw DataError(fmt::format("{}: samples of type {}; expected generate_until", from.samples.path,
                                tasks::name_of(*source.settings().type)));
  tasks::EncoderOptions options;
  options.max_length = std::min(tasks::max_length_of(bounds.checkpoint_folder), bounds.max_positions);
  tasks::TaskEncoder encoder(tokenizer, std::move(options));
  Prompts prompts;
  while (static_cast<std::int64_t>(prompts.items.size()) < count_of(from)) {
    std::optional<tasks::TaskDocument> document = source.next();
    if (!document) break;
    document->generation.max_tokens = config.max_tokens;
    PromptItem& item = prompts.items.emplace_back();
    item.tokens =
        encoder.encode(*document, fmt::format("{}: line {}", from.samples.path, document->line)).generation->prompt;
    item.text = document->requests.at(0).context;
    item.doc = document->doc;
  }
  check_count(from, static_cast<std::int64_t>(prompts.items.size()), from.samples.path, "documents");
  prompts.description = source.describe();
  prompts.description["cut_contexts"] = encoder.counts().cut_contexts;
  return prompts;
}

Prompts read_recall(const GenerationConfig& config, const TokenizerPointer& tokenizer, const PromptBounds& bounds) {
  datasets::RecallTask task(config.prompts.recall, tokenizer, config.prompts.root);
  Prompts prompts;
  for (const datasets::RecallCell& cell : task.cells())
    for (std::int64_t index = 0; index < task.spec().items; ++index) {
      const datasets::RecallItem made = task.item(cell, index);
      PromptItem& item = prompts.items.emplace_back();
      item.tokens.assign(made.prompt().begin(), made.prompt().end());
      item.text = tokenizer->decode(item.tokens);
      item.doc = {{"id", made.id}};
      check_room(item, config.max_tokens, bounds.max_positions, config.prompts.place + ": " + made.id);
    }
  prompts.description = task.describe();
  prompts.description["form"] = "recall";
  return prompts;
}

Prompts read(const GenerationConfig& config, const TokenizerPointer& tokenizer, const PromptBounds& bounds) {
  switch (config.prompts.form) {
    case PromptForm::jsonl:
      return read_jsonl(config, tokenizer, bounds);
    case PromptForm::text:
      return read_text(config, tokenizer, bounds);
    case PromptForm::samples:
      return read_samples(config, tokenizer, bounds);
    case PromptForm::recall:
      break;
  }
  return read_recall(config, tokenizer, bounds);
}

}  // namespace

Prompts read_prompts(const GenerationConfig& config, const TokenizerPointer& tokenizer, const PromptBounds& bounds) {
  for (const std::int32_t id : config.end_tokens)
    if (id >= bounds.vocab_size)
      throw DataError(fmt::format("{}: end_tokens: found {}, expected ids from 0 to {}", config.prompts.place, id,
                                  bounds.vocab_size - 1));
  if (config.top_k > bounds.vocab_size)
    throw DataError(fmt::format("{}: top_k: found {}, expected at most the vocabulary's {}", config.prompts.place,
                                config.top_k, bounds.vocab_size));
  return read(config, tokenizer, bounds);
}

}  // namespace replayeval
