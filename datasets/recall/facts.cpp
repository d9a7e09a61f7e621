#include "datasets/recall/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "datasets/error.h"
#include "datasets/recall/words.h"

namespace replayeval::datasets::recall {
namespace {

const Relation& relation_of(const Fact& fact) { return words().relations[fact.relation]; }

// A fact whose relation and subject are not both those of another; now and then another relation of a known subject.
Fact new_fact(Random& random, const std::vector<Fact>& known) {
  while (true) {
    Fact fact;
    fact.relation = random.below(words().relations.size());
    const Relation& relation = relation_of(fact);
    std::vector<std::string> same_kind;
    for (const Fact& other : known)
      if (relation_of(other).subject == relation.subject) same_kind.push_back(other.subject);
    fact.subject =
        !same_kind.empty() && random.unit() < 0.15 ? random.choice(same_kind) : draw(random, relation.subject);
    const bool fresh = std::none_of(known.begin(), known.end(), [&](const Fact& other) {
      return other.relation == fact.relation && other.subject == fact.subject;
    });
    if (!fresh) continue;
    fact.value = draw(random, relation.value);
    return fact;
  }
}

// The template with its subject, without the " {v}" at its end.
std::string up_to_the_value(std::string text, const Fact& fact) {
  text.resize(text.rfind(" {v}"));
  for (std::size_t at = text.find("{s}"); at != std::string::npos; at = text.find("{s}", at + fact.subject.size()))
    text.replace(at, 3, fact.subject);
  return text;
}

std::vector<std::int64_t> choose_asked(Random& random, const FactsOptions& options) {
  std::vector<std::int64_t> asked(static_cast<std::size_t>(options.facts));
  std::iota(asked.begin(), asked.end(), 0);
  if (options.depth) {
    const double place = *options.depth * static_cast<double>(options.facts - 1);
    std::stable_sort(asked.begin(), asked.end(), [&](auto a, auto b) {
      return std::abs(static_cast<double>(a) - place) < std::abs(static_cast<double>(b) - place);
    });
    asked.resize(static_cast<std::size_t>(options.questions));
  }
  random.shuffle(asked);
  asked.resize(static_cast<std::size_t>(options.questions));
  return asked;
}

}  // namespace

FactsDraft draft_facts(Random& random, const FactsOptions& options) {
  FactsDraft draft;
  for (std::int64_t i = 0; i < options.facts; ++i) draft.facts.push_back(new_fact(random, draft.facts));
  draft.asked = choose_asked(random, options);
  for (const std::int64_t i : draft.asked) {
    const Fact& fact = draft.facts[static_cast<std::size_t>(i)];
    append(draft.questions, question(up_to_the_value(random.choice(relation_of(fact).questions), fact), fact.value, i));
  }
  for (std::int64_t i = 0; i < options.facts; ++i) {
    const Fact& fact = draft.facts[static_cast<std::size_t>(i)];
    draft.statements.push_back(
        statement(up_to_the_value(random.choice(relation_of(fact).statements), fact), fact.value, i));
  }
  return draft;
}

std::int64_t content_size(const FactsDraft& draft, const Count& count) {
  std::int64_t size = size_of(draft.questions, count);
  for (const Segments& statement : draft.statements) size += size_of(statement, count);
  return size;
}

void fill(Random& random, std::int64_t length, const Filler& filler, const Count& count, FactsDraft& draft) {
  draft.room = length - content_size(draft, count);
  if (draft.room < 0)
    throw DataError(fmt::format("{} facts and {} questions do not fit into {} tokens; expected {} or more",
                                draft.facts.size(), draft.asked.size(), length, length - draft.room));
  draft.filler = filler.gather(random, draft.room);
}

Segments deal(Random& random, const FactsDraft& draft) {
  std::vector<Segments> gaps(draft.statements.size() + 1);
  for (const Segment& segment : draft.filler) gaps[random.below(gaps.size())].push_back(segment);
  Segments document = gaps.front();
  for (std::size_t i = 0; i < draft.statements.size(); ++i) {
    append(document, draft.statements[i]);
    append(document, gaps[i + 1]);
  }
  append(document, draft.questions);
  return document;
}

double chance_of_facts(const FactsDraft& draft) {
  double chance = 0.0;
  for (const std::int64_t i : draft.asked) {
    const std::string& kind = relation_of(draft.facts[static_cast<std::size_t>(i)]).value;
    const auto alike = std::count_if(draft.facts.begin(), draft.facts.end(),
                                     [&](const Fact& fact) { return relation_of(fact).value == kind; });
    chance += 1.0 / static_cast<double>(alike) / static_cast<double>(draft.asked.size());
  }
  return chance;
}

}  // namespace replayeval::datasets::recall
