#include "datasets/post_processors.h"

#include <limits>
#include <string>

#include "datasets/nested_parts.h"

namespace replayeval::datasets {
namespace {

// {"SpecialToken": {"id": NAME}} through the template's own table of names.
void append_special(const JsonNode& piece, const JsonNode& processor, std::vector<std::int32_t>& ids) {
  const JsonNode entry = processor.at("special_tokens").at(piece.at("id").string());
  for (const JsonNode& id : entry.at("ids").elements()) {
    ids.push_back(static_cast<std::int32_t>(id.integer(0, std::numeric_limits<std::int32_t>::max())));
  }
}

SurroundingTokens parse_template(const JsonNode& node) {
  SurroundingTokens tokens;
  bool text_seen = false;
  const JsonNode single = node.at("single");
  for (const JsonNode& piece : single.elements()) {
    if (const auto special = piece.find("SpecialToken")) {
      append_special(*special, node, text_seen ? tokens.after : tokens.before);
    } else if (const auto sequence = piece.find("Sequence")) {
      if (text_seen || sequence->at("id").string() != "A") single.fail("expected the text ($A) once");
      text_seen = true;
    } else {
      piece.refuse("a member SpecialToken or Sequence");
    }
  }
  if (!text_seen) single.fail("expected the text ($A) once");
  return tokens;
}

SurroundingTokens parse(const JsonNode& node, int depth) {
  const std::size_t type = node.at("type").choice({"TemplateProcessing", "ByteLevel", "Sequence"});
  if (type == 0) return parse_template(node);
  SurroundingTokens tokens;
  if (type == 1) return tokens;
  if (depth >= max_nesting) node.fail("sequences are nested too deeply; expected at most 16 in one another");
  for (const JsonNode& element : node.at("processors").elements()) {
    const SurroundingTokens outer = parse(element, depth + 1);
    tokens.before.insert(tokens.before.begin(), outer.before.begin(), outer.before.end());
    tokens.after.insert(tokens.after.end(), outer.after.begin(), outer.after.end());
  }
  return tokens;
}

}  // namespace

SurroundingTokens parse_post_processor(const JsonNode& node) { return parse(node, 0); }

}  // namespace replayeval::datasets
