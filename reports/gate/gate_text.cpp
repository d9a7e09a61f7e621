#include "reports/gate/gate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/document.h"
#include "reports/markdown_blocks.h"
#include "reports/numbers.h"
#include "reports/text_table.h"

namespace replayeval::reports::gate {
namespace {

// Worst first; those alike in the policy's order.
std::vector<Judgement> sorted(const Outcome& outcome) {
  std::vector<Judgement> judgements = outcome.judgements;
  const auto rank = [](const Judgement& judgement) {
    const int effect = judgement.effect == Effect::fail ? 0 : judgement.effect == Effect::warn ? 1 : 2;
    const int word = judgement.word == Word::regression ? 0 : judgement.word == Word::unusable ? 1 : 2;
    return 3 * effect + word;
  };
  std::stable_sort(judgements.begin(), judgements.end(),
                   [&](const Judgement& one, const Judgement& other) { return rank(one) < rank(other); });
  return judgements;
}

std::size_t count(const Outcome& outcome, Word word) {
  return static_cast<std::size_t>(std::count_if(outcome.judgements.begin(), outcome.judgements.end(),
                                                [&](const Judgement& one) { return one.word == word; }));
}

Tint tint_of(const Judgement& judgement) {
  if (judgement.word == Word::pass) return Tint::good;
  return judgement.effect == Effect::fail ? Tint::bad : Tint::warning;
}

std::string with_need(const Judgement& judgement) {
  const std::string need = need_text(judgement);
  return sentence(judgement) + (need.empty() ? "" : "; " + need);
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
  return fmt::format("{}; {} decide four times in five if the true value is {}\n", have, count_text(*judgement.needed),
                     number_text(measured.value, judgement.rule));
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
      "half of what its confidence leaves: at most {:.3g} % that any does.\n",
      judged, 100.0 * std::min(1.0, sum));
}

// A line a rule: what passes is not spelt out.
std::vector<std::string> passes(const Outcome& outcome) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < outcome.judgements.size();) {
    const Rule& rule = outcome.judgements[i].rule;
    std::size_t passed = 0, all = 0;
    for (; i < outcome.judgements.size() && outcome.judgements[i].rule.name == rule.name; ++i, ++all)
      passed += outcome.judgements[i].word == Word::pass ? 1 : 0;
    if (passed > 0)
      lines.push_back(fmt::format("{}: {} of {}, {} {}", rule.name, passed, all, rule.metric, margin_text(rule)));
  }
  return lines;
}

}  // namespace

std::string headline(const Outcome& outcome) {
  const std::size_t all = outcome.judgements.size();
  std::string text = fmt::format("{} of {} pass", count(outcome, Word::pass), all);
  for (const Word word : {Word::regression, Word::inconclusive, Word::unusable})
    if (const std::size_t found = count(outcome, word); found > 0)
      text += fmt::format(", {} {}{}", found, name_of(word), word == Word::regression && found > 1 ? "s" : "");
  const char* words[] = {"pass", "regression", "inconclusive", "cannot be judged"};
  return fmt::format("{}: {} (exit code {})", words[std::clamp(outcome.exit_code(), 0, 3)], text, outcome.exit_code());
}

std::string gate_text(const Outcome& outcome, bool colour) {
  std::string text;
  for (const Judgement& judgement : sorted(outcome)) {
    if (judgement.word == Word::pass) continue;
    const std::string word = fmt::format("{:<12}", name_of(judgement.word));
    text += fmt::format("{} {}: {}{}\n", tinted(word, tint_of(judgement), colour), judgement.rule.name,
                        with_need(judgement),
                        judgement.word == Word::inconclusive ? fmt::format(" ({} by policy)", name_of(judgement.effect))
                                                             : std::string());
  }
  for (const std::string& line : passes(outcome))
    text += fmt::format("{} {}\n", tinted(fmt::format("{:<12}", "pass"), Tint::good, colour), line);
  return text + headline(outcome) + "\n";
}

std::string explanation(const Outcome& outcome) {
  std::string text;
  for (const Judgement& judgement : outcome.judgements) text += explained(judgement) + "\n";
  return text + false_alarms(outcome) + headline(outcome) + "\n";
}

std::string gate_markdown(const Outcome& outcome) {
  Table table({"verdict", "rule", "workload", "arm", "found", "expected", "to decide"}, {1, 2, 3, 4, 5, 6});
  for (const Judgement& judgement : sorted(outcome)) {
    const Measurement& measured = judgement.measured;
    const Text word =
        name_of(judgement.word) +
        (judgement.word == Word::inconclusive ? fmt::format(" ({})", name_of(judgement.effect)) : std::string());
    table.add_row({judgement.effect == Effect::fail ? strong(word.plain()) : word, judgement.rule.name,
                   measured.workload.empty() ? Text("–") : code(measured.workload),
                   measured.arm.empty() ? Text("–") : code(measured.arm),
                   judgement.word == Word::unusable ? measured.fault : found_text(judgement),
                   margin_text(judgement.rule), need_text(judgement)});
  }
  Bullets warnings;
  for (const std::string& warning : outcome.warnings) warnings.items.emplace_back("warning: " + warning);
  const std::string text =
      markdown::blocks({Heading{3, fmt::format("Gate {}: {}", outcome.policy, headline(outcome))}, table});
  return warnings.items.empty() ? text : text + "\n" + markdown::blocks({warnings});
}

}  // namespace replayeval::reports::gate
