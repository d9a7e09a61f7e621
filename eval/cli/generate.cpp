#include "eval/cli/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "datasets/tokenizer.h"
#include "eval/checkpoint/checkpoint.h"
#include "eval/cli/arm_options.h"
#include "eval/cli/generated_text.h"
#include "eval/cli/text_input.h"
#include "eval/cli/token_ids_file.h"
#include "eval/comparator/generation/end_tokens.h"
#include "eval/comparator/generation/generator.h"
#include "eval/metrics/agreement.h"
#include "eval/model/architecture.h"

namespace replayeval {
namespace {

struct Arguments {
  std::string checkpoint, prompt, ids;
  bool has_prompt = false, compare = false, json = false, ignore_eos = false, raw = false;
  std::int64_t max_tokens = 128;
  Sampling sampling;
  std::uint64_t seed = 0;
  bool prefill = true;
  std::vector<std::string> arms, stops;
  ModelArguments model;
};

struct Prepared {
  std::shared_ptr<const datasets::Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  std::vector<Arm> arms;
  std::set<std::int32_t> end_tokens;
  GenerationItem item;
};

std::string prompt_text(const Arguments& arguments) {
  if (arguments.has_prompt) {
    require_text(arguments.prompt, "--prompt");
    return arguments.prompt;
  }
  std::string text = read_standard_input();
  if (text.ends_with('\n')) text.pop_back();
  require_text(text, "standard input");
  return text;
}

std::vector<std::int32_t> prompt_ids(const Arguments& arguments, const datasets::Tokenizer& tokenizer,
                                     const Architecture& architecture) {
  std::vector<std::int32_t> ids;
  if (!arguments.ids.empty()) {
    for (const std::int64_t id : read_token_ids(arguments.ids, architecture.vocab_size))
      ids.push_back(static_cast<std::int32_t>(id));
  } else {
    ids = tokenizer.encode(prompt_text(arguments));
    if (!arguments.raw) ids = tokenizer.add_special_tokens(std::move(ids));
  }
  const auto tokens = static_cast<std::int64_t>(ids.size());
  if (tokens + arguments.max_tokens > architecture.max_positions)
    throw std::invalid_argument(
        fmt::format("a prompt of {} tokens and --max-tokens {}; expected at most the model's {} positions", tokens,
                    arguments.max_tokens, architecture.max_positions));
  return ids;
}

// Every arm has a name of its own, equal ones too.
std::vector<Arm> arms_of(const Arguments& arguments, RingForm published, Dtype compute) {
  std::vector<std::string> words = arguments.arms;
  if (words.empty())
    words = arguments.compare ? std::vector<std::string>{"exact", "replay"} : std::vector<std::string>{"exact"};
  if (words.size() > 1 && !arguments.compare)
    throw std::invalid_argument(fmt::format("--arm: {} arms; expected one, or --compare", words.size()));
  if (words.size() == 1 && arguments.compare)
    throw std::invalid_argument("--compare: one arm; expected --arm twice or more, or not at all for exact and replay");
  std::vector<Arm> arms;
  for (const std::string& word : words) {
    Arm arm = arm_of_word(word, published, compute);
    const auto before = std::count(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(arms.size()), word);
    if (before > 0) arm.name += fmt::format(" ({})", before + 1);
    arms.push_back(std::move(arm));
  }
  return arms;
}

Prepared prepare(const Arguments& arguments) {
  if (const std::string fault = fault_of(arguments.sampling); !fault.empty()) throw std::invalid_argument(fault);
  if (!arguments.sampling.draws() && arguments.sampling.is_limited())
    throw std::invalid_argument(
        "--top-k, --top-p: mean nothing where nothing is drawn; expected --temperature above 0");
  const Checkpoint checkpoint = Checkpoint::open(arguments.checkpoint);
  const ModelOptions options = options_of(arguments.model, checkpoint);
  const Architecture architecture = describe_architecture(checkpoint);
  if (arguments.sampling.top_k > architecture.vocab_size)
    throw std::invalid_argument(fmt::format("--top-k: found {}, expected at most the vocabulary's {}",
                                            arguments.sampling.top_k, architecture.vocab_size));
  Prepared prepared;
  prepared.arms = arms_of(arguments, architecture.published_ring_form(), options.compute_dtype);
  prepared.tokenizer = datasets::load_tokenizer(arguments.checkpoint);
  if (!arguments.ignore_eos)
    prepared.end_tokens = end_tokens_of(arguments.checkpoint, prepared.tokenizer.get(), architecture.vocab_size);
  prepared.item.prompt = prompt_ids(arguments, *prepared.tokenizer, architecture);
  prepared.item.max_tokens = arguments.max_tokens;
  prepared.item.stops = arguments.stops;
  prepared.item.sampling = arguments.sampling;
  prepared.model = load_model(checkpoint, options);
  return prepared;
}

std::vector<GeneratedSequence> generate(const Arguments& arguments, const Prepared& prepared,
                                        const std::function<void(std::int32_t)>& token) {
  GenerationOptions options;
  options.seed = arguments.seed;
  options.prefill = arguments.prefill;
  options.end_tokens = prepared.end_tokens;
  const auto capacity = static_cast<std::int64_t>(prepared.item.prompt.size()) + arguments.max_tokens;
  Generator generator(*prepared.model, prepared.arms, prepared.tokenizer, std::move(options), capacity);
  std::vector<GeneratedSequence> sequences;
  Generator::Events events;
  events.done = [&](const GenerationItem&, std::vector<GeneratedSequence> found) { sequences = std::move(found); };
  if (token) events.token = [&](const GenerationItem&, std::size_t, std::int32_t id) { token(id); };
  generator.run({prepared.item}, events);
  return sequences;
}

const char* ending_name(Ending ending) {
  if (ending == Ending::end_token) return "end_token";
  return ending == Ending::stop ? "stop" : "limit";
}

const char* ending_words(Ending ending) {
  if (ending == Ending::end_token) return "ended";
  return ending == Ending::stop ? "a stop string" : "reached --max-tokens";
}

void stream(const Arguments& arguments, const Prepared& prepared) {
  GeneratedText text(prepared.tokenizer, arguments.stops);
  const auto show = [](const std::string& more) {
    fmt::print("{}", more);
    std::fflush(stdout);
  };
  generate(arguments, prepared, [&](std::int32_t token) { show(text.add(token)); });
  show(text.rest() + "\n");
}

std::string whole_text(const Arguments& arguments, const Prepared& prepared, const GeneratedSequence& sequence) {
  return StopStrings(prepared.tokenizer, arguments.stops)
      .cut(prepared.tokenizer->decode(sequence.tokens, datasets::SpecialTokens::skip));
}

// An arm's text with a bar where it parts from the first arm's.
void print_side_by_side(const Arguments& arguments, const Prepared& prepared,
                        const std::vector<GeneratedSequence>& sequences) {
  for (std::size_t arm = 0; arm < sequences.size(); ++arm) {
    const GeneratedSequence& sequence = sequences[arm];
    std::string text = whole_text(arguments, prepared, sequence), parting;
    if (arm > 0) {
      const metrics::Agreement agreement = metrics::agreement(sequences[0].tokens, sequence.tokens);
      parting = fmt::format("; the same as {}", prepared.arms[0].name);
      if (!agreement.identical()) {
        parting = fmt::format("; parts from {} after {}", prepared.arms[0].name, *agreement.first_divergence);
        const std::vector<std::int32_t> shared(sequence.tokens.begin(),
                                               sequence.tokens.begin() + *agreement.first_divergence);
        const std::string same = prepared.tokenizer->decode(shared, datasets::SpecialTokens::skip);
        text.insert(std::min(same.size(), text.size()), " ║ ");
      }
    }
    fmt::print("{}{}: {} tokens, {}{}\n{}\n", arm == 0 ? "" : "\n", prepared.arms[arm].name, sequence.tokens.size(),
               ending_words(sequence.ending), parting, text);
  }
}

nlohmann::json described(const Arguments& arguments, const Prepared& prepared,
                         const std::vector<GeneratedSequence>& sequences) {
  nlohmann::json arms = nlohmann::json::array();
  for (std::size_t arm = 0; arm < sequences.size(); ++arm) {
    nlohmann::json& one = arms.emplace_back(to_json(prepared.arms[arm]));
    one["ids"] = sequences[arm].tokens;
    one["text"] = whole_text(arguments, prepared, sequences[arm]);
    one["ending"] = ending_name(sequences[arm].ending);
    if (arm == 0) continue;
    const metrics::Agreement agreement = metrics::agreement(sequences[0].tokens, sequences[arm].tokens);
    one["identical"] = agreement.identical();
    one["edit_distance"] = agreement.edit_distance;
    if (!agreement.identical()) one["first_divergence"] = *agreement.first_divergence;
  }
  return {{"prompt_ids", prepared.item.prompt},
          {"max_tokens", arguments.max_tokens},
          {"temperature", arguments.sampling.temperature},
          {"seed", arguments.seed},
          {"end_tokens", prepared.end_tokens},
          {"prompt", arguments.prefill ? "prefill" : "decode"},
          {"arms", arms}};
}

void run_generate(const Arguments& arguments) {
  const Prepared prepared = prepare(arguments);
  if (!arguments.json && !arguments.compare) return stream(arguments, prepared);
  const std::vector<GeneratedSequence> sequences = generate(arguments, prepared, {});
  if (arguments.json)
    fmt::print("{}\n", described(arguments, prepared, sequences).dump(2));
  else
    print_side_by_side(arguments, prepared, sequences);
}

void add_prompt_options(CLI::App& command, Arguments& arguments) {
  CLI::Option* prompt = command.add_option("--prompt", arguments.prompt,
                                           "The text to continue (default: standard input, "
                                           "but for a newline at its end)");
  CLI::Option* ids = command.add_option("--ids", arguments.ids, "JSON file: a list of token ids to continue");
  ids->excludes(prompt);
  command
      .add_flag("--no-special-tokens", arguments.raw, "Without the tokens that the tokenizer's files put around a text")
      ->excludes(ids);
  add_choice<bool, bool>(command, "--prompt-by", arguments.prefill, {{"prefill", true}, {"decode", false}},
                         "How the prompt is computed: apart, as servers do it, or through the arm (default prefill)");
}

}  // namespace

void add_generate_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("generate", "Continue a prompt under one arm, or several side by side");
  command->add_option("checkpoint", arguments->checkpoint, "Hugging Face checkpoint folder")->required();
  add_prompt_options(*command, *arguments);
  command->add_option("--max-tokens", arguments->max_tokens, "Tokens to generate, at most (default 128)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  Sampling& sampling = arguments->sampling;
  command->add_option("--temperature", sampling.temperature, "0: the likeliest token (default); above: drawn");
  command->add_option("--top-k", sampling.top_k, "Draw from this many of the likeliest tokens (default 0: of all)");
  command->add_option("--top-p", sampling.top_p, "Draw from the likeliest tokens that make up this share (default 1)");
  command->add_option("--seed", arguments->seed, "Of draws (default 0); they do not depend on the arm")
      ->check([](const std::string& seed) { return seed.starts_with('-') ? "expected a whole number, 0 or more" : ""; },
              "", "");
  command->add_option("--stop", arguments->stops, "A text that ends the generation; may be given again")
      ->allow_extra_args(false)
      ->check([](const std::string& stop) { return stop.empty() ? "empty; expected text" : ""; }, "", "");
  command->add_flag("--ignore-eos", arguments->ignore_eos, "No token ends the generation");
  command
      ->add_option("--arm", arguments->arms,
                   "exact (default), replay, or one with the options of `replayeval logits`: "
                   "replay:buffer-len=8,state-dtype=bfloat16; again with --compare")
      ->allow_extra_args(false);
  command->add_flag("--compare", arguments->compare,
                    "All arms (default: exact and replay) side by side, with a bar where they part from the first");
  command->add_flag("--json", arguments->json, "One JSON object on stdout: ids, text and ending of each arm");
  add_model_options(*command, arguments->model);
  command->callback([arguments, command] {
    arguments->has_prompt = command->count("--prompt") > 0;
    run_generate(*arguments);
  });
}

}  // namespace replayeval
