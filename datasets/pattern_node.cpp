#include "datasets/pattern_node.h"

#include "datasets/oniguruma_pattern.h"

namespace replayeval::datasets {

Regex regex_of(const JsonNode& node) {
  if (node.value().is_string()) return Regex::literal(node.string(), node.place());  // as old files have it
  if (const auto text = node.find("String")) return Regex::literal(text->string(), text->place());
  if (const auto pattern = node.find("Regex")) {
    return {pcre2_from_oniguruma(pattern->string(), pattern->place()), pattern->place()};
  }
  node.refuse("a member String or Regex");
}

}  // namespace replayeval::datasets
