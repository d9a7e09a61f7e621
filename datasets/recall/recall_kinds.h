// The kinds of recall documents by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/recall/recipe.h"

namespace replayeval::datasets::recall {

// One of a kind's own numbers.
struct KindOption {
  const char* name;
  std::int64_t RecallOptions::*value;
  std::int64_t least, most;
};

struct Kind {
  const char* name;
  // nullptr for facts, which facts.h makes.
  Recipe (*recipe)(Random&, const RecallOptions&, const Room&);
  std::vector<KindOption> options;
};

const std::vector<Kind>& kinds();
// nullptr for an unknown name.
const Kind* find_kind(const std::string& name);

}  // namespace replayeval::datasets::recall
