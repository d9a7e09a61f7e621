#include "eval/cli/tokenize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/text_source.h"
#include "datasets/tokenizer.h"
#include "eval/cli/text_input.h"

namespace replayeval {
namespace {

struct Options {
  std::string checkpoint, file, text, decode;
  bool has_text = false, has_decode = false, json = false, json_lines = false;
  bool add_special = false, skip_special = false;

  datasets::SpecialTokens special() const {
    return skip_special ? datasets::SpecialTokens::skip : datasets::SpecialTokens::keep;
  }
};

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

std::vector<std::int32_t> encode(const datasets::Tokenizer& tokenizer, const Options& options, std::string_view text) {
  std::vector<std::int32_t> ids = tokenizer.encode(text);
  return options.add_special ? tokenizer.add_special_tokens(std::move(ids)) : ids;
}

// A text to a line of ids, a list of ids to a line with their text.
std::string convert_line(const datasets::Tokenizer& tokenizer, const Options& options, const std::string& line) {
  const nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
  if (value.is_string()) return nlohmann::json(encode(tokenizer, options, value.get<std::string>())).dump();
  const auto is_id = [](const nlohmann::json& id) {
    return id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max();
  };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_id)) {
    throw datasets::DataError("found '" + line + "', expected a JSON string or a list of token ids");
  }
  return nlohmann::json(tokenizer.decode(value.get<std::vector<std::int32_t>>(), options.special())).dump();
}

void print_lines(const datasets::Tokenizer& tokenizer, const Options& options) {
  const std::string place = options.file.empty() ? "standard input" : options.file;
  std::istringstream text(options.file.empty() ? read_standard_input() : datasets::read_text_file(options.file));
  std::string line, converted;
  for (std::int64_t number = 1; std::getline(text, line); ++number) {
    try {
      converted += convert_line(tokenizer, options, line) + "\n";
    } catch (const datasets::DataError& error) {
      throw datasets::DataError(fmt::format("{}: line {}: {}", place, number, error.what()));
    }
  }
  fmt::print("{}", converted);  // all lines or none
}

void print_decoded(const datasets::Tokenizer& tokenizer, const Options& options) {
  const std::vector<std::int32_t> ids = parse_ids(options.decode);
  const std::string text = tokenizer.decode(ids, options.special());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json({{"ids", ids}, {"text", text}}).dump());
  } else {
    fmt::print("{}\n", text);
  }
}

void print_encoded(const datasets::Tokenizer& tokenizer, const Options& options) {
  const std::string place = options.has_text ? "--text" : options.file.empty() ? "standard input" : options.file;
  const std::string text = options.has_text       ? options.text
                           : options.file.empty() ? read_standard_input()
                                                  : datasets::read_text_file(options.file);
  require_text(text, place);
  const std::vector<std::int32_t> ids = encode(tokenizer, options, text);
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
  if (options.json_lines) {
    print_lines(*tokenizer, options);
  } else if (options.has_decode) {
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
  CLI::Option* json = command->add_flag("--json", options->json, "One JSON object on stdout");
  CLI::Option* lines =
      command->add_flag("--jsonl", options->json_lines,
                        "JSON Lines from the file or standard input: a string becomes a line of ids, a "
                        "list of ids a line with their text");
  command->add_flag("--special-tokens", options->add_special,
                    "Put around each text what the tokenizer's files ask for");
  command->add_flag("--skip-special-tokens", options->skip_special, "Leave special tokens out of decoded text");
  text->excludes(file)->excludes(decode);
  decode->excludes(file);
  lines->excludes(text)->excludes(decode)->excludes(json);
  command->callback([options, text, decode] {
    options->has_text = text->count() > 0;
    options->has_decode = decode->count() > 0;
    tokenize_command(*options);
  });
}

}  // namespace replayeval
