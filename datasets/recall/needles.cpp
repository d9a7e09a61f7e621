#include "datasets/recall/draw_different.h"
#include "datasets/recall/recipe.h"
#include "datasets/recall/words.h"

namespace replayeval::datasets::recall {
namespace {

std::vector<std::string> different(Random& random, std::int64_t count, const char* kind) {
  return draw_different(count, [&] { return draw(random, kind); });
}

// Needle 0 is asked for and stands at the depth.
Recipe one_of(Random& random, std::int64_t needles, double depth) {
  const std::vector<std::string> persons = different(random, needles, "person");
  const std::vector<std::string> codes = different(random, needles, "code");
  Recipe recipe;
  for (std::size_t i = 0; i < persons.size(); ++i) {
    const double place = i == 0 ? depth : random.unit();
    recipe.blocks.push_back(
        {place, statement("The secret code of " + persons[i] + " is", codes[i], static_cast<std::int64_t>(i))});
    recipe.forbidden.push_back(persons[i]);
    recipe.forbidden.push_back(codes[i]);
  }
  recipe.tail =
      question("What is the secret code of " + persons[0] + "? The secret code of " + persons[0] + " is", codes[0], 0);
  return recipe;
}

std::string listed(const std::vector<std::string>& items) {
  std::string text = items.front();
  for (std::size_t i = 1; i < items.size(); ++i) text += (i + 1 < items.size() ? ", " : " and ") + items[i];
  return text;
}

}  // namespace

Recipe needle_single(Random& random, const RecallOptions&, const Room& room) {
  Recipe recipe = one_of(random, 1, room.depth);
  const auto code_words = static_cast<double>(words().code_words.size());
  recipe.chance = 1.0 / (code_words * code_words * 90.0);
  return recipe;
}

Recipe needle_multi_key(Random& random, const RecallOptions& options, const Room& room) {
  Recipe recipe = one_of(random, options.needles, room.depth);
  recipe.chance = 1.0 / static_cast<double>(options.needles);
  return recipe;
}

Recipe needle_multi_value(Random& random, const RecallOptions& options, const Room& room) {
  const std::string person = draw(random, "person");
  const std::vector<std::string> codes = different(random, options.values, "code");
  Recipe recipe;
  recipe.forbidden = codes;
  recipe.forbidden.push_back(person);
  recipe.chance = 1.0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto step = static_cast<double>(i) / static_cast<double>(codes.size());
    recipe.blocks.push_back({room.depth + (1.0 - room.depth) * step,
                             statement("One of the secret codes of " + person + " is", codes[i], 0)});
    recipe.chance /= static_cast<double>(i + 1);
  }
  recipe.tail =
      question("What are the secret codes of " + person + " in the order given? The secret codes of " + person + " are",
               listed(codes), 0);
  return recipe;
}

}  // namespace replayeval::datasets::recall
