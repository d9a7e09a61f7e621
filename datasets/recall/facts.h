// Documents of facts and questions as datasets/recall_documents.py makes them (evaluation_document), number by number
// of the same random stream: what the bundled checkpoints were trained to answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "datasets/recall/filler.h"
#include "datasets/recall/random.h"
#include "datasets/recall/segments.h"

namespace replayeval::datasets::recall {

struct Fact {
  std::size_t relation = 0;  // in words().relations
  std::string subject, value;
};

struct FactsOptions {
  std::int64_t facts = 16, questions = 8;  // questions <= facts
  // Asked for are the facts nearest this place among all of them; without: any.
  std::optional<double> depth;
};

struct FactsDraft {
  std::vector<Fact> facts;
  std::vector<std::int64_t> asked;   // indices of facts, in the order of the questions
  std::vector<Segments> statements;  // of each fact
  Segments questions, filler;
  std::int64_t room = 0;  // tokens that are left of the length
};

// All but filler and room.
FactsDraft draft_facts(Random& random, const FactsOptions& options);
std::int64_t content_size(const FactsDraft& draft, const Count& count);  // its tokens

// Adds filler to a document of at most `length` tokens. Throws DataError when the facts and questions alone are longer.
void fill(Random& random, std::int64_t length, const Filler& filler, const Count& count, FactsDraft& draft);

// The document: filler dealt out over the gaps between the statements, questions last.
Segments deal(Random& random, const FactsDraft& draft);

// What picking any of the document's values of the kind that is asked for is worth, over the questions.
double chance_of_facts(const FactsDraft& draft);

}  // namespace replayeval::datasets::recall
