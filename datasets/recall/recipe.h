// What a recall document is made of, one function a kind. Adding a kind: one function in a file of its own, and its
// line in the table of recall_kinds.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/recall/random.h"
#include "datasets/recall/segments.h"

namespace replayeval::datasets::recall {

// How much of everything; each kind reads its own.
struct RecallOptions {
  std::int64_t facts = 16;     // facts: statements in the document
  std::int64_t questions = 8;  // facts, associative_recall: asked at the end
  std::int64_t pairs = 32;     // associative_recall
  std::int64_t needles = 8;    // needle_multi_key: keys, one value each
  std::int64_t values = 4;     // needle_multi_value: values of the one key
  std::int64_t chains = 4;     // variable_tracking: chains of assignments, one of which is asked for
  std::int64_t hops = 3;       // variable_tracking: assignments of a variable to a variable, in each chain
  std::int64_t words = 16;     // copying: words of the list
  std::int64_t objects = 5;    // state_tracking: objects, and boxes they are swapped between
};

// Segments that belong together, and the share of all filler that stands before them.
struct Block {
  double place = 0.0;
  Segments segments;
};

struct Recipe {
  std::vector<Block> blocks;
  Segments tail;                       // the questions, directly behind the last filler
  std::vector<std::string> forbidden;  // what filler must not hold
  double chance = 0.0;                 // what guessing from the document is worth, as each function says
  std::vector<std::string> choices;    // where the answer is one of few
};

// The document, up to its questions, is a task of the depth: the first thing that matters stands behind this share of
// all filler.
struct Room {
  double depth = 0.0;
  std::int64_t length = 0;  // tokens of the whole document
  Count count;
};

// "copper river goes with amber." × pairs in one block, then the questions repeat some of them. Chance: the most
// frequent value.
Recipe associative_recall(Random& random, const RecallOptions& options, const Room& room);
// "The secret code of Marta Quill is anchor apple 42." once, at the depth. Chance: guessing a code.
Recipe needle_single(Random& random, const RecallOptions& options, const Room& room);
// The same for several persons, the others anywhere. Chance: the code of any of them.
Recipe needle_multi_key(Random& random, const RecallOptions& options, const Room& room);
// Several codes of one person, from the depth to the end at equal steps; all are asked for, in order. Chance: any
// order.
Recipe needle_multi_value(Random& random, const RecallOptions& options, const Room& room);
// "Let amber be 48213." … "Let river be amber." Chains of assignments; the end of one is asked for. The asked chain
// goes from the depth to the end at equal steps, the others are anywhere. Chance: any chain's number.
Recipe variable_tracking(Random& random, const RecallOptions& options, const Room& room);
// A list of different words, to be repeated. Chance: drawing the same words.
Recipe copying(Random& random, const RecallOptions& options, const Room& room);
// Objects in boxes, and swaps of two boxes all the way from the depth to the end; asked is what one box holds. It is
// the composition of permutations, of S_5 with five objects. Chance: any object.
Recipe state_tracking(Random& random, const RecallOptions& options, const Room& room);

}  // namespace replayeval::datasets::recall
