#include "reports/gate/gate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "reports/document.h"
#include "reports/gate/worst_first.h"
#include "reports/markdown_blocks.h"
#include "reports/numbers.h"
#include "reports/text_table.h"

namespace replayeval::reports::gate {
namespace {

Tint tint_of(const Judgement& judgement) {
  if (judgement.word == Word::pass) return Tint::good;
  return judgement.effect == Effect::fail ? Tint::bad : Tint::warning;
}

std::string word_column(const Judgement& judgement, bool colour) {
  return tinted(fmt::format("{:<12}", name_of(judgement.word)), tint_of(judgement), colour);
}

const char* what_decided(const Judgement& judgement) {
  const bool by_value = judgement.rule.compare == Compare::value;
  switch (judgement.word) {
    case Word::pass:
      return by_value ? "the value lies inside the margin" : "the interval lies inside the margin";
    case Word::regression:
      return by_value ? "the value lies outside the margin" : "the interval lies wholly outside the margin";
    case Word::inconclusive:
      return judgement.measured.doubt.empty() ? "the interval reaches over a bound" : judgement.measured.doubt.c_str();
    default:
      return judgement.measured.fault.c_str();
  }
}

std::string needed_line(const Judgement& judgement) {
  const Measurement& measured = judgement.measured;
  if (judgement.word == Word::unusable || !measured.n) return "";
  const std::string have = fmt::format("  {}: {}", measured.unit, count_text(*measured.n));
  if (!judgement.needed) return have + "\n";
  return fmt::format("{}; {} decide four times in five if the true value is the one found\n", have,
                     count_text(*judgement.needed));
}

std::string explained(const Judgement& judgement) {
  const Rule& rule = judgement.rule;
  const Measurement& measured = judgement.measured;
  std::string text =
      fmt::format("{} ({})\n  rule: {} {}{}, {:g} % confidence, inconclusive: {}\n", rule.name, rule.place, rule.metric,
                  margin_text(rule), rule.against == Against::release ? " since the release" : "",
                  100.0 * rule.confidence, name_of(rule.inconclusive));
  if (judgement.word == Word::unusable) return text + fmt::format("  unusable: {}\n", sentence(judgement));
  text += fmt::format("  found: {}\n", sentence(judgement));
  if (!measured.method.empty()) text += fmt::format("  interval: {}\n", measured.method);
  text += needed_line(judgement);
  return text + fmt::format("  {}: {}\n", name_of(judgement.word), what_decided(judgement));
}

// Every judgement errs on a bound with at most half of 1 - confidence; together they may add up.
std::string false_alarms(const Outcome& outcome) {
  double sum = 0.0;
  std::size_t judged = 0;
  for (const Judgement& one : outcome.judgements) {
    if (one.word == Word::unusable || one.rule.compare == Compare::value || !one.measured.confidence) continue;
    sum += (1.0 - *one.measured.confidence) / 2.0;
    ++judged;
  }
  if (judged == 0) return "";
  return fmt::format(
      "With every true value exactly on its bound, each of {} judgements by interval calls a regression with at most "
      "half of what its confidence leaves: {:.2g} of them on average at most.\n",
      judged, sum);
}

// "all 9 judgements pass", "2 of 6 judgements pass, 4 are inconclusive": of one rule or of all of them.
std::string tally(const std::vector<Judgement>& judgements) {
  const std::size_t all = judgements.size();
  const auto count = [&](Word word, std::optional<Effect> effect = {}) {
    return static_cast<std::size_t>(std::count_if(judgements.begin(), judgements.end(), [&](const Judgement& one) {
      return one.word == word && (!effect || one.effect == *effect);
    }));
  };
  const std::size_t passed = count(Word::pass), regressions = count(Word::regression);
  const std::size_t unusable = count(Word::unusable), open = count(Word::inconclusive);
  if (passed == all)
    return all == 1   ? "the only judgement passes"
           : all == 2 ? "both judgements pass"
                      : fmt::format("all {} judgements pass", all);
  std::string text = fmt::format("{} of {} {} pass", passed, all, all == 1 ? "judgement" : "judgements");
  if (regressions > 0)
    text += regressions == 1 ? ", 1 is a regression" : fmt::format(", {} are regressions", regressions);
  if (unusable > 0) text += fmt::format(", {} cannot be judged", unusable);
  if (open > 0) {
    text += fmt::format(", {} {} inconclusive", open, open == 1 ? "is" : "are");
    const std::size_t failing = count(Word::inconclusive, Effect::fail);
    if (failing == 0) text += ", which the policy lets through";
    if (failing > 0 && failing < open) text += fmt::format(" ({} of them let through by the policy)", open - failing);
  }
  return text;
}

Judgement worst_of(const std::vector<Judgement>& judgements) {
  return worst_first({.policy = "", .judgements = judgements, .warnings = {}}).front();
}

// A line a rule, in the policy's order: the worst word, and how many of its judgements pass.
std::string by_rule(const Outcome& outcome, bool colour) {
  std::string text;
  for (std::size_t i = 0; i < outcome.judgements.size();) {
    const Rule& rule = outcome.judgements[i].rule;
    std::vector<Judgement> own;
    for (; i < outcome.judgements.size() && outcome.judgements[i].rule.name == rule.name; ++i)
      own.push_back(outcome.judgements[i]);
    const Judgement worst = worst_of(own);
    text += fmt::format("{} {}: {}; {} {}{}\n", word_column(worst, colour), rule.name, tally(own), rule.metric,
                        margin_text(rule), rule.against == Against::release ? " since the release" : "");
  }
  return text;
}

}  // namespace

std::string headline(const Outcome& outcome) {
  const char* words[] = {"pass", "regression", "inconclusive", "cannot be judged"};
  return fmt::format("{}: {} (exit code {})", words[std::clamp(outcome.exit_code(), 0, 3)], tally(outcome.judgements),
                     outcome.exit_code());
}

std::string gate_text(const Outcome& outcome, bool colour) {
  std::string text;
  for (const Remark& remark : remarks(outcome))
    text += fmt::format("{} {}: {}{}\n", word_column(remark.first, colour), who(remark), what(remark),
                        remark.first.word == Word::inconclusive
                            ? fmt::format(" ({} by policy)", name_of(remark.first.effect))
                            : std::string());
  if (!text.empty()) text += "\n";
  return text + by_rule(outcome, colour) + headline(outcome) + "\n";
}

std::string explanation(const Outcome& outcome) {
  std::string text;
  for (const Judgement& judgement : outcome.judgements) text += explained(judgement) + "\n";
  return text + false_alarms(outcome) + headline(outcome) + "\n";
}

std::string gate_markdown(const Outcome& outcome) {
  Table table({"verdict", "rule", "workload", "arm", "found", "expected", "to decide"}, {1, 2, 3, 4, 5, 6});
  for (const Judgement& judgement : worst_first(outcome)) {
    const Measurement& measured = judgement.measured;
    const Text word =
        name_of(judgement.word) +
        (judgement.word == Word::inconclusive ? fmt::format(" ({})", name_of(judgement.effect)) : std::string());
    table.add_row({judgement.effect == Effect::fail ? strong(word.plain()) : word, judgement.rule.name,
                   measured.workload.empty() ? Text("–") : code(measured.workload),
                   measured.arm.empty() ? Text("–") : code(measured.arm),
                   judgement.word == Word::unusable ? measured.fault : found_text(judgement),
                   margin_text(judgement.rule), measured.doubt.empty() ? need_text(judgement) : measured.doubt});
  }
  Bullets warnings;
  for (const std::string& warning : outcome.warnings) warnings.items.emplace_back("warning: " + warning);
  const std::string text =
      markdown::blocks({Heading{3, fmt::format("Gate {}: {}", outcome.policy, headline(outcome))}, table});
  return warnings.items.empty() ? text : text + "\n" + markdown::blocks({warnings});
}

std::string markdown_of_fault(const std::string& message) {
  return markdown::blocks({Heading{3, "Gate: cannot be judged"}, Paragraph{message}});
}

}  // namespace replayeval::reports::gate
