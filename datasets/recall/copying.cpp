#include "datasets/recall/draw_different.h"
#include "datasets/recall/recipe.h"
#include "datasets/recall/words.h"

namespace replayeval::datasets::recall {

Recipe copying(Random& random, const RecallOptions& options, const Room& room) {
  const std::vector<std::string> list =
      draw_different(options.words, [&] { return random.choice(words().code_words); });
  Recipe recipe;
  recipe.chance = 1.0;
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    text += (text.empty() ? "" : " ") + list[i];
    recipe.chance /= static_cast<double>(words().code_words.size() - i);
  }
  recipe.forbidden = {text};
  recipe.blocks = {{room.depth, statement("The list to remember is:", text, 0)}};
  recipe.tail = question("What was the list? The list to remember is:", text, 0);
  return recipe;
}

}  // namespace replayeval::datasets::recall
