// What a generation workload's sequences begin with, as token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "datasets/tasks/python_json.h"
#include "datasets/tokenizer.h"
#include "eval/comparator/run_config.h"

namespace replayeval {

struct PromptItem {
  std::vector<std::int32_t> tokens;
  std::string text;        // as written, or as the tokens spell it
  tasks::OrderedJson doc;  // what samples show of where it comes from
};

struct Prompts {
  std::vector<PromptItem> items;  // at least one
  nlohmann::json description;     // {name, form, sha256, ...}: what decides every prompt
};

// What prompts must suit.
struct PromptBounds {
  std::filesystem::path checkpoint_folder;
  std::int64_t vocab_size = 0, max_positions = 0;
};

// jsonl: a row's member is a text, which gets the special tokens that the tokenizer's files ask for, or a list of ids.
// text: `count` pieces of `tokens` tokens each, evenly spread over all such pieces of the documents. samples: as
// lm-evaluation-harness encodes them, cut on the left so that max_tokens fit. recall: documents up to their first
// answer. Throws DataError naming file, line and expectation: no prompts, an empty one, one that leaves no room for
// max_tokens, ids outside the vocabulary, too few pieces.
Prompts read_prompts(const GenerationConfig& config, const std::shared_ptr<const datasets::Tokenizer>& tokenizer,
                     const PromptBounds& bounds);

}  // namespace replayeval
