#include "eval/cli/tokenize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/text_source.h"
#include "datasets/tokenizer.h"
#include "datasets/utf8.h"

namespace replayeval {
namespace {

struct Options {
  std::string checkpoint, file, text, decode;
  bool has_text = false, has_decode = false, json = false;
};

std::string read_stdin() {
  std::string text;
  char buffer[65536];
  while (const std::size_t count = std::fread(buffer, 1, sizeof(buffer), stdin)) text.append(buffer, count);
  if (std::ferror(stdin) != 0) throw datasets::DataError("standard input: cannot be read");
  return text;
}

// Numbers parted by commas or white space; the brackets of a JSON list are let pass.
std::vector<std::int32_t> parse_ids(const std::string& text) {
  std::vector<std::int32_t> ids;
  constexpr std::string_view between = ", \t\r\n[]";
  std::size_t at = 0;
  while ((at = text.find_first_not_of(between, at)) != std::string::npos) {
    const std::size_t end = std::min(text.find_first_of(between, at), text.size());
    const std::string word = text.substr(at, end - at);
    std::int32_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size()) {
      throw datasets::DataError(fmt::format("--decode: byte {}: found '{}', expected a token id", at, word));
    }
    ids.push_back(id);
    at = end;
  }
  if (ids.empty()) throw datasets::DataError("--decode: no token ids; expected numbers such as 17,4,256");
  return ids;
}

void print_decoded(const datasets::Tokenizer& tokenizer, const Options& options) {
  const std::vector<std::int32_t> ids = parse_ids(options.decode);
  const std::string text = tokenizer.decode(ids);
  if (options.json) {
    fmt::print("{}\n", nlohmann::json({{"ids", ids}, {"text", text}}).dump());
  } else {
    fmt::print("{}\n", text);
  }
}

void print_encoded(const datasets::Tokenizer& tokenizer, const Options& options) {
  const std::string place = options.has_text ? "--text" : options.file.empty() ? "standard input" : options.file;
  const std::string text = options.has_text       ? options.text
                           : options.file.empty() ? read_stdin()
                                                  : datasets::read_text_file(options.file);
  if (text.empty()) throw datasets::DataError(place + ": is empty; expected UTF-8 text");
  if (const auto fault = datasets::find_utf8_fault(text)) {
    throw datasets::DataError(
        fmt::format("{}: byte {}: found {}, expected UTF-8 text", place, fault->offset, fault->found));
  }
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  if (!options.json) {
    fmt::print("{}\n", fmt::join(ids, " "));
    return;
  }
  nlohmann::json pieces = nlohmann::json::array();
  for (const std::int32_t id : ids) pieces.push_back(tokenizer.piece(id));
  fmt::print("{}\n", nlohmann::json({{"ids", ids},
                                     {"pieces", pieces},
                                     {"tokens", ids.size()},
                                     {"bytes", text.size()},
                                     {"vocab_size", tokenizer.vocab_size()}})
                         .dump());
}

void tokenize_command(const Options& options) {
  const auto tokenizer = datasets::load_tokenizer(options.checkpoint);
  if (options.has_decode) {
    print_decoded(*tokenizer, options);
  } else {
    print_encoded(*tokenizer, options);
  }
}

}  // namespace

void add_tokenize_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("tokenize", "Text to token ids and back, with a checkpoint's own tokenizer");
  command->add_option("checkpoint", options->checkpoint, "Checkpoint folder")->required();
  CLI::Option* file = command->add_option("file", options->file, "Text file, plain or gzip (default: standard input)");
  CLI::Option* text = command->add_option("--text", options->text, "The text itself");
  CLI::Option* decode = command->add_option("--decode", options->decode, "Token ids to turn into text, e.g. 17,4,256");
  command->add_flag("--json", options->json, "One JSON object on stdout");
  text->excludes(file)->excludes(decode);
  decode->excludes(file);
  command->callback([options, text, decode] {
    options->has_text = text->count() > 0;
    options->has_decode = decode->count() > 0;
    tokenize_command(*options);
  });
}

}  // namespace replayeval
