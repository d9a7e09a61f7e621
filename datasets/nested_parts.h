// Parts of a tokenizer.json that may hold others of their kind ({"type": "Sequence", ...}).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "datasets/json_node.h"

namespace replayeval::datasets {

constexpr int max_nesting = 16;  // of sequences; published files use one

// Makes each element of the list `node.at(key)` by make(element, depth + 1).
template <typename Part, typename Make>
std::vector<std::unique_ptr<Part>> make_parts(const JsonNode& node, const std::string& key, int depth, Make make) {
  if (depth >= max_nesting) node.fail("sequences are nested too deeply; expected at most 16 in one another");
  std::vector<std::unique_ptr<Part>> parts;
  for (const JsonNode& element : node.at(key).elements()) parts.push_back(make(element, depth + 1));
  return parts;
}

}  // namespace replayeval::datasets
