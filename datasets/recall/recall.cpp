#include "datasets/recall/recall.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "datasets/recall/facts.h"
#include "datasets/recall/layout.h"
#include "datasets/recall/pieces.h"
#include "datasets/recall/recall_kinds.h"
#include "datasets/recall/recall_spec.h"

namespace replayeval::datasets {
namespace {

// Goes up when the same spec makes other documents.
constexpr int generator_version = 1;

using namespace recall;

struct Haystack {
  std::vector<std::string> lines;
  nlohmann::json description = nlohmann::json::array();
};

Haystack read_haystack(const std::vector<TextSourceSpec>& specs, const std::filesystem::path& root) {
  Haystack haystack;
  for (const TextSourceSpec& spec : specs) {
    TextSource source = TextSource::open(spec, root);
    haystack.description.push_back(source.describe());
    const std::size_t before = haystack.lines.size();
    while (const auto document = source.next()) {
      for (std::string& line : sentence_lines(document->text)) haystack.lines.push_back(std::move(line));
    }
    if (haystack.lines.size() == before)
      throw DataError(fmt::format("{}: no line is a whole sentence of 40 to 300 characters; a haystack needs some",
                                  source.files().front().string()));
  }
  return haystack;
}

std::string depth_name(const std::optional<double>& depth) { return depth ? fmt::format("{}", *depth) : "any"; }

Random stream_of(const RecallSpec& spec, const RecallCell& cell, std::int64_t index) {
  Random random(spec.seed);
  random.mix(spec.kind);
  random.mix(static_cast<std::uint64_t>(cell.length));
  random.mix(cell.depth ? static_cast<std::uint64_t>(depth_number(*cell.depth)) : ~std::uint64_t{0});
  random.mix(static_cast<std::uint64_t>(index));
  return random;
}

std::vector<RecallCell> cells_of(const RecallSpec& spec, std::int64_t length) {
  if (spec.depths.empty()) return {{length, std::nullopt}};
  std::vector<RecallCell> cells;
  for (const double depth : spec.depths) cells.push_back({length, depth});
  return cells;
}

// Ids of the segments into item.tokens, and the answers with what led to them.
void encode(const Segments& segments, Pieces& pieces, RecallItem& item) {
  std::map<std::int64_t, RecallAnswer> stated;  // by fact
  std::int64_t first_question = -1;
  for (const Segment& segment : segments) {
    const auto begin = static_cast<std::int64_t>(item.tokens.size());
    const Ids& ids = pieces.of(segment);
    item.tokens.insert(item.tokens.end(), ids.begin(), ids.end());
    const auto end = static_cast<std::int64_t>(item.tokens.size());
    if (segment.part == Part::question && first_question < 0) first_question = begin;
    if (segment.part == Part::value) {
      RecallAnswer& answer = stated[segment.fact];
      if (answer.statements++ == 0) answer.stated_begin = begin;
      answer.stated_end = end;
    }
    if (segment.part == Part::answer) {
      RecallAnswer answer = stated.at(segment.fact);
      answer.begin = begin;
      answer.end = end;
      answer.depth = static_cast<double>(answer.stated_begin) / static_cast<double>(first_question);
      item.answers.push_back(answer);
    }
  }
}

}  // namespace

struct RecallTask::Impl {
  RecallSpec spec;
  Haystack haystack;
  Pieces pieces;

  FactsOptions facts_options(const std::optional<double>& depth) const {
    return {spec.options.facts, spec.options.questions, depth};
  }

  // Tokens of a document apart from its filler: the least length that it fits into.
  std::int64_t least_length(const RecallCell& cell, std::int64_t index) {
    const auto prefix = static_cast<std::int64_t>(pieces.prefix().size());
    Random random = stream_of(spec, cell, index);
    const Kind& kind = *find_kind(spec.kind);
    if (kind.recipe == nullptr)
      return prefix + content_size(draft_facts(random, facts_options(cell.depth)), pieces.count());
    // Depth 1: the actions of state_tracking fill what lies behind the depth, and are as few as can be.
    const Recipe recipe = kind.recipe(random, spec.options, {1.0, cell.length - prefix, pieces.count()});
    return prefix + content_size(recipe, pieces.count());
  }

  // Of all items of all cells of that length.
  std::int64_t least_length(std::int64_t length) {
    std::int64_t least = 0;
    for (const RecallCell& cell : cells_of(spec, length))
      for (std::int64_t index = 0; index < spec.items; ++index) least = std::max(least, least_length(cell, index));
    return least;
  }

  Segments facts_document(Random& random, std::int64_t room, RecallItem& item) {
    const Filler filler(haystack.lines, pieces.count(), pieces.single_token());
    FactsDraft draft = draft_facts(random, facts_options(item.depth));
    fill(random, room, filler, pieces.count(), draft);
    filler.settle(random, draft.filler, draft.room);
    item.chance = chance_of_facts(draft);
    return deal(random, draft);
  }

  Segments document(Random& random, std::int64_t room, RecallItem& item) {
    const Kind& kind = *find_kind(spec.kind);
    if (kind.recipe == nullptr) return facts_document(random, room, item);
    const Recipe recipe = kind.recipe(random, spec.options, {item.depth.value_or(0.0), room, pieces.count()});
    item.chance = recipe.chance;
    for (const std::string& choice : recipe.choices) item.choices.push_back(pieces.after_space(choice));
    const Filler filler(haystack.lines, pieces.count(), pieces.single_token(), recipe.forbidden);
    return lay_out(random, room, recipe, filler, pieces.count(), spec.kind);
  }
};

RecallTask::RecallTask(RecallSpec spec, std::shared_ptr<const Tokenizer> tokenizer, const std::filesystem::path& root) {
  check_spec(spec, "recall");
  if (spec.name.empty()) spec.name = spec.kind;
  Haystack haystack = read_haystack(spec.haystack, root);
  impl_ = std::make_unique<Impl>(Impl{std::move(spec), std::move(haystack), Pieces(std::move(tokenizer))});
}
RecallTask::~RecallTask() = default;
RecallTask::RecallTask(RecallTask&&) noexcept = default;
RecallTask& RecallTask::operator=(RecallTask&&) noexcept = default;

const RecallSpec& RecallTask::spec() const { return impl_->spec; }

std::vector<RecallCell> RecallTask::cells() const {
  std::vector<RecallCell> cells;
  for (const std::int64_t length : spec().lengths)
    for (const RecallCell& cell : cells_of(spec(), length)) cells.push_back(cell);
  return cells;
}

void RecallTask::check_lengths() {
  for (const std::int64_t length : spec().lengths) {
    const std::int64_t needed = impl_->least_length(length);
    if (needed <= length) continue;
    // Another length has other items: go on to one that holds its own.
    std::int64_t enough = needed;
    for (std::int64_t next = impl_->least_length(enough); next > enough; next = impl_->least_length(enough))
      enough = next;
    const std::string others =
        enough == needed ? "" : fmt::format("; every length draws documents of its own, and those of {} fit", enough);
    throw DataError(
        fmt::format("recall '{}': lengths: found {}, expected {} or more: without filler its documents have "
                    "up to {} tokens{}",
                    spec().name, length, enough, needed, others));
  }
}

RecallItem RecallTask::item(const RecallCell& cell, std::int64_t index) {
  Impl& impl = *impl_;
  RecallItem item;
  item.id = fmt::format("{}/{}/{}/{}", impl.spec.kind, cell.length, depth_name(cell.depth), index);
  item.kind = impl.spec.kind;
  item.length = cell.length;
  item.depth = cell.depth;
  item.index = index;
  item.tokens = impl.pieces.prefix();
  Random random = stream_of(impl.spec, cell, index);
  const auto prefix = static_cast<std::int64_t>(item.tokens.size());
  try {
    encode(impl.document(random, cell.length - prefix, item), impl.pieces, item);
  } catch (const DataError& error) {
    throw DataError(fmt::format("recall '{}', length {}: {}", impl.spec.name, cell.length, error.what()));
  }
  return item;
}

nlohmann::json RecallTask::describe() const {
  const Tokenizer& tokenizer = impl_->pieces.tokenizer();
  nlohmann::json description = to_json(impl_->spec);
  description["generator"] = generator_version;
  description["tokenizer"] = {{"kind", tokenizer.kind()}, {"sha256", tokenizer.sha256()}};
  description["haystack"] = impl_->haystack.description;
  return description;
}

}  // namespace replayeval::datasets
