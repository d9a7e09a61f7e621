#include "datasets/recall/words.h"

#include <cctype>
#include <nlohmann/json.hpp>

namespace replayeval::datasets::recall {

extern const char* const words_text;  // words.json, by words_text.cpp.in

namespace {

Words parse() {
  const nlohmann::json json = nlohmann::json::parse(words_text);
  Words words;
  const std::pair<const char*, std::vector<std::string>*> lists[] = {
      {"first_names", &words.first_names}, {"last_names", &words.last_names}, {"place_heads", &words.place_heads},
      {"place_tails", &words.place_tails}, {"code_words", &words.code_words}, {"materials", &words.materials},
      {"trades", &words.trades},           {"things", &words.things},         {"qualities", &words.qualities},
      {"beasts", &words.beasts},           {"subjects", &words.subjects},     {"verbs", &words.verbs},
      {"objects", &words.objects},         {"endings", &words.endings}};
  for (const auto& [name, list] : lists) *list = json.at(name).get<std::vector<std::string>>();
  for (const auto& [name, relation] : json.at("relations").items())
    words.relations.push_back({name, relation.at("subject"), relation.at("value"),
                               relation.at("statements").get<std::vector<std::string>>(),
                               relation.at("questions").get<std::vector<std::string>>()});
  return words;
}

std::string capitalized(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

std::string two(Random& random, const std::vector<std::string>& first, const std::vector<std::string>& second) {
  std::string text = random.choice(first);
  return text + " " + random.choice(second);
}

}  // namespace

const Words& words() {
  static const Words all = parse();
  return all;
}

std::string draw(Random& random, const std::string& kind) {
  const Words& w = words();
  if (kind == "person") return two(random, w.first_names, w.last_names);
  if (kind == "place") return two(random, w.place_heads, w.place_tails);
  if (kind == "trade") return two(random, w.materials, w.trades);
  if (kind == "object") return two(random, w.qualities, w.things);
  if (kind == "ship") return capitalized(two(random, w.qualities, w.beasts));
  std::string code = two(random, w.code_words, w.code_words);
  return code + " " + std::to_string(10 + random.below(90));
}

std::string generated_sentence(Random& random) {
  const Words& w = words();
  std::string sentence = random.choice(w.subjects);
  for (const std::vector<std::string>* part : {&w.verbs, &w.objects, &w.endings})
    sentence += " " + random.choice(*part);
  return capitalized(sentence) + ".";
}

}  // namespace replayeval::datasets::recall
