#include "datasets/recall/recall_kinds.h"

#include "datasets/recall/recall.h"

namespace replayeval::datasets {

namespace recall {

// The most of each: what the built-in words can tell apart, with room to draw.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"facts",
       nullptr,
       {{"facts", &RecallOptions::facts, 1, 1024}, {"questions", &RecallOptions::questions, 1, 1024}}},
      {"associative_recall",
       associative_recall,
       {{"pairs", &RecallOptions::pairs, 1, 4096}, {"questions", &RecallOptions::questions, 1, 4096}}},
      {"needle_single", needle_single, {}},
      {"needle_multi_key", needle_multi_key, {{"needles", &RecallOptions::needles, 2, 1024}}},
      {"needle_multi_value", needle_multi_value, {{"values", &RecallOptions::values, 2, 16}}},
      {"variable_tracking",
       variable_tracking,
       {{"chains", &RecallOptions::chains, 1, 8}, {"hops", &RecallOptions::hops, 0, 9}}},
      {"copying", copying, {{"words", &RecallOptions::words, 1, 80}}},
      {"state_tracking", state_tracking, {{"objects", &RecallOptions::objects, 2, 9}}},
  };
  return all;
}

const Kind* find_kind(const std::string& name) {
  for (const Kind& kind : kinds())
    if (name == kind.name) return &kind;
  return nullptr;
}

}  // namespace recall

std::vector<std::string> recall_kinds() {
  std::vector<std::string> names;
  for (const recall::Kind& kind : recall::kinds()) names.emplace_back(kind.name);
  return names;
}

}  // namespace replayeval::datasets
