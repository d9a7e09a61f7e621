#include <algorithm>
#include <map>
#include <numeric>

#include "datasets/recall/draw_different.h"
#include "datasets/recall/recipe.h"
#include "datasets/recall/words.h"

namespace replayeval::datasets::recall {

Recipe associative_recall(Random& random, const RecallOptions& options, const Room& room) {
  const std::vector<std::string> keys = draw_different(options.pairs, [&] {
    std::string key = random.choice(words().code_words);
    return key + " " + random.choice(words().code_words);
  });
  Recipe recipe;
  recipe.blocks = {{room.depth, {}}};
  std::vector<std::string> values;
  std::map<std::string, double> times;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    values.push_back(random.choice(words().code_words));
    recipe.chance = std::max(recipe.chance, ++times[values.back()] / static_cast<double>(keys.size()));
    append(recipe.blocks[0].segments, statement(keys[i] + " goes with", values[i], static_cast<std::int64_t>(i)));
    recipe.forbidden.push_back(keys[i] + " goes with");
  }
  std::vector<std::size_t> asked(keys.size());
  std::iota(asked.begin(), asked.end(), std::size_t{0});
  random.shuffle(asked);
  asked.resize(static_cast<std::size_t>(options.questions));
  for (const std::size_t i : asked)
    append(recipe.tail, question(keys[i] + " goes with", values[i], static_cast<std::int64_t>(i)));
  return recipe;
}

}  // namespace replayeval::datasets::recall
