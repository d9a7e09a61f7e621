#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "datasets/recall/draw_different.h"
#include "datasets/recall/filler.h"
#include "datasets/recall/recipe.h"
#include "datasets/recall/words.h"

namespace replayeval::datasets::recall {
namespace {

constexpr std::array<const char*, 9> numerals{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};

// Swaps until `tokens` are used up, at least one; `boxes` holds what they lead to.
Segments swaps(Random& random, std::int64_t tokens, const Count& count, std::vector<std::string>& boxes) {
  Segments segments;
  while (true) {
    const std::size_t one = random.below(boxes.size()), step = 1 + random.below(boxes.size() - 1);
    const std::size_t other = (one + step) % boxes.size();
    const Segments swap = statement(std::string("Swap box ") + numerals[one] + " and box", numerals[other], 0);
    tokens -= size_of(swap, count);
    if (tokens < 0 && !segments.empty()) return segments;
    std::swap(boxes[one], boxes[other]);
    append(segments, swap);
  }
}

}  // namespace

Recipe state_tracking(Random& random, const RecallOptions& options, const Room& room) {
  std::vector<std::string> boxes = draw_different(options.objects, [&] { return random.choice(words().code_words); });
  Recipe recipe;
  recipe.choices = boxes;
  recipe.chance = 1.0 / static_cast<double>(options.objects);
  recipe.forbidden = {"Swap box", "holds the"};
  Segments actions;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    append(actions, statement(std::string("Box ") + numerals[i] + " holds the", boxes[i], 0));
  const std::size_t asked = random.below(boxes.size());
  // Which object it will be is not known before the swaps; room is kept for the longest.
  const auto ask = [&](const std::string& object) {
    return question(std::string("Now box ") + numerals[asked] + " holds the", object, 0);
  };
  std::int64_t longest = 0;
  for (const std::string& object : boxes) longest = std::max(longest, size_of(ask(object), room.count));
  const std::int64_t left = room.length - size_of(actions, room.count) - longest;
  // What swaps leave of the length is made up by sentences in front.
  const std::int64_t for_swaps =
      std::min(static_cast<std::int64_t>(std::llround((1.0 - room.depth) * static_cast<double>(left))),
               left - few_sentences(random, room.count));
  append(actions, swaps(random, for_swaps, room.count, boxes));
  recipe.tail = ask(boxes[asked]);
  recipe.blocks = {{1.0, std::move(actions)}};  // behind all filler, whose share the swaps have set
  return recipe;
}

}  // namespace replayeval::datasets::recall
