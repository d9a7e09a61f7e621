#include <algorithm>

#include "datasets/recall/draw_different.h"
#include "datasets/recall/recipe.h"
#include "datasets/recall/words.h"

namespace replayeval::datasets::recall {
namespace {

// Where the assignments of a chain stand, in order.
std::vector<double> places_of_chain(Random& random, std::int64_t assignments, bool asked, double depth) {
  std::vector<double> places;
  for (std::int64_t i = 0; i < assignments; ++i) {
    const double step = static_cast<double>(i) / static_cast<double>(assignments);
    places.push_back(asked ? depth + (1.0 - depth) * step : random.unit());
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

Recipe variable_tracking(Random& random, const RecallOptions& options, const Room& room) {
  const std::int64_t assignments = options.hops + 1;
  const std::vector<std::string> names =
      draw_different(options.chains * assignments, [&] { return random.choice(words().code_words); });
  const std::vector<std::string> numbers =
      draw_different(options.chains, [&] { return std::to_string(10000 + random.below(90000)); });
  Recipe recipe;
  recipe.forbidden = numbers;
  recipe.chance = 1.0 / static_cast<double>(options.chains);
  auto name = names.begin();
  std::string asked;
  for (std::int64_t chain = 0; chain < options.chains; ++chain) {
    std::string value = numbers[static_cast<std::size_t>(chain)];
    for (const double place : places_of_chain(random, assignments, chain == 0, room.depth)) {
      recipe.blocks.push_back({place, statement("Let " + *name + " be", value, chain)});
      value = *name++;
    }
    if (chain == 0) asked = value;
  }
  recipe.tail = question("What is " + asked + "? The value of " + asked + " is", numbers[0], 0);
  return recipe;
}

}  // namespace replayeval::datasets::recall
