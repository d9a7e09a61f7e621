// Synthetic recall: documents in which facts, lists or states must be kept over a distance, of any length, made with
// the checkpoint's own tokenizer. Nothing is downloaded.
//
// Kinds: facts (what the bundled checkpoints were trained on), associative_recall, needle_single, needle_multi_key,
// needle_multi_value, variable_tracking, copying, state_tracking; recipe.h says what each looks like.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/error.h"
#include "datasets/recall/recall_item.h"
#include "datasets/recall/recipe.h"
#include "datasets/text_source.h"
#include "datasets/tokenizer.h"

namespace replayeval::datasets {

inline constexpr std::int64_t longest_recall = 131072;

struct RecallSpec {
  std::string name;  // as reports name it; default: the kind
  std::string kind;
  std::vector<std::int64_t> lengths;  // tokens of a document, bos, questions and answers included; 1 … longest_recall
  // 0 … 1. Default: 0, 0.25, 0.5, 0.75 and 1; for facts none, that is facts anywhere and questions about any of them,
  // as in training.
  std::vector<double> depths;
  std::int64_t items = 20;  // of each length and depth
  std::uint64_t seed = 0;
  recall::RecallOptions options;
  std::vector<TextSourceSpec> haystack;  // real text for filler, its lines that are whole sentences; none: generated
};

// {kind, lengths, name?, depths?, items?, seed?, haystack?: [text source …], and the kind's own numbers?}. `place`
// names the object in messages. Throws DataError on unknown keys, wrong types and numbers out of range.
RecallSpec parse_recall(const nlohmann::json& object, const std::string& place);
// Everything that decides the items, only the kind's own numbers among the options.
nlohmann::json to_json(const RecallSpec& spec);

std::vector<std::string> recall_kinds();  // names, in the order above

struct RecallCell {
  std::int64_t length = 0;
  std::optional<double> depth;
};

// Not for several threads at once.
class RecallTask {
 public:
  // Reads the haystack, whose paths are relative to `root`. Throws DataError: a kind that is unknown, a spec out of
  // range, a haystack without a whole sentence, or a tokenizer that cannot make documents of parts (pieces.h).
  RecallTask(RecallSpec spec, std::shared_ptr<const Tokenizer> tokenizer, const std::filesystem::path& root);
  ~RecallTask();
  RecallTask(RecallTask&&) noexcept;
  RecallTask& operator=(RecallTask&&) noexcept;

  const RecallSpec& spec() const;
  std::vector<RecallCell> cells() const;  // all depths of the first length, then of the next
  // Draws what every item needs apart from filler. Throws DataError naming a length that some item does not fit into
  // and one that all items of that length fit into.
  void check_lengths();
  // Depends on seed, kind, length, depth and index, on the options, the haystack and the tokenizer, and on nothing
  // else. Throws DataError when the kind's content alone is longer than the cell's length, naming both.
  RecallItem item(const RecallCell& cell, std::int64_t index);
  // The spec, and {generator, tokenizer {kind, sha256}, haystack [text source …]}: what decides every token.
  nlohmann::json describe() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace replayeval::datasets
