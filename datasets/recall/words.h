// The built-in words, out of words.json beside this file, which recall_documents.py reads as well.
#pragma once

#include <string>
#include <vector>

#include "datasets/recall/random.h"

namespace replayeval::datasets::recall {

// A kind of fact. Texts hold "{s}" for the subject and end in " {v}", the value.
struct Relation {
  std::string name;
  std::string subject, value;  // kinds: person, place, code, trade, object, ship
  std::vector<std::string> statements, questions;
};

struct Words {
  std::vector<std::string> first_names, last_names, place_heads, place_tails, code_words, materials, trades, things,
      qualities, beasts;
  std::vector<std::string> subjects, verbs, objects, endings;  // of generated sentences
  std::vector<Relation> relations;                             // by name
};

const Words& words();

// A subject or value of a kind, e.g. "Marta Quill", "Amber Ferry", "anchor apple 42".
std::string draw(Random& random, const std::string& kind);

// "The old man walked along the river in the morning." and 57,000 others.
std::string generated_sentence(Random& random);

}  // namespace replayeval::datasets::recall
