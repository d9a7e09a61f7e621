#include "datasets/recall/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "datasets/error.h"

namespace replayeval::datasets::recall {
namespace {

// Of `all` tokens of filler, `given` of which stand before earlier blocks: how many shall stand before this one.
std::int64_t filler_before(double place, std::int64_t given, std::int64_t all, std::int64_t smallest_gap) {
  const auto wanted = static_cast<std::int64_t>(std::llround(place * static_cast<double>(all)));
  if (all - wanted < smallest_gap) return all;
  return wanted - given < smallest_gap ? given : wanted;
}

}  // namespace

std::int64_t content_size(const Recipe& recipe, const Count& count) {
  std::int64_t size = size_of(recipe.tail, count);
  for (const Block& block : recipe.blocks) size += size_of(block.segments, count);
  return size;
}

Segments lay_out(Random& random, std::int64_t length, const Recipe& recipe, const Filler& filler, const Count& count,
                 const std::string& kind) {
  std::vector<const Block*> blocks;
  for (const Block& block : recipe.blocks) blocks.push_back(&block);
  const std::int64_t room = length - content_size(recipe, count);
  if (room < 0)
    throw DataError(fmt::format("{} does not fit into {} tokens; expected {} or more", kind, length, length - room));
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block* one, const Block* other) { return one->place < other->place; });
  const std::int64_t smallest_gap = few_sentences(random, count);
  Segments document;
  std::int64_t given = 0;
  for (const Block* block : blocks) {
    const std::int64_t before = filler_before(block->place, given, room, smallest_gap);
    append(document, filler.exactly(random, before - given));
    append(document, block->segments);
    given = before;
  }
  append(document, filler.exactly(random, room - given));
  append(document, recipe.tail);
  return document;
}

}  // namespace replayeval::datasets::recall
