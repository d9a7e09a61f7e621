#include "reports/gate/worst_first.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace replayeval::reports::gate {
namespace {

const std::string& reason(const Judgement& judgement) {
  return judgement.word == Word::unusable ? judgement.measured.fault : judgement.measured.doubt;
}

bool same_reason(const Judgement& one, const Judgement& other) {
  return one.word == other.word && one.effect == other.effect && !reason(one).empty() && reason(one) == reason(other);
}

std::string of_what(const Measurement& measured) {
  std::string workload = measured.workload.empty() ? "" : fmt::format("'{}'", measured.workload);
  if (measured.arm.empty()) return workload;
  return fmt::format("arm '{}'{}", measured.arm, workload.empty() ? "" : " on " + workload);
}

void add_new(const std::string& text, std::vector<std::string>& texts) {
  if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
}

void add(const Judgement& judgement, Remark& remark) {
  add_new(judgement.rule.name, remark.rules);
  if (const std::string other = of_what(judgement.measured); other != of_what(remark.first.measured))
    add_new(other, remark.likewise);
}

}  // namespace

std::vector<Judgement> worst_first(const Outcome& outcome) {
  std::vector<Judgement> judgements = outcome.judgements;
  const auto rank = [](const Judgement& judgement) {
    const int effect = judgement.effect == Effect::fail ? 0 : judgement.effect == Effect::warn ? 1 : 2;
    const int word = judgement.word == Word::regression ? 0
                     : judgement.word == Word::unusable ? 1
                     : judgement.word == Word::pass     ? 3
                                                        : 2;
    return 4 * effect + word;
  };
  std::stable_sort(judgements.begin(), judgements.end(),
                   [&](const Judgement& one, const Judgement& other) { return rank(one) < rank(other); });
  return judgements;
}

std::vector<Remark> remarks(const Outcome& outcome) {
  std::vector<Remark> all;
  for (const Judgement& judgement : worst_first(outcome)) {
    if (judgement.word == Word::pass) continue;
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const Remark& one) { return same_reason(one.first, judgement); });
    if (same == all.end())
      all.push_back({judgement, {judgement.rule.name}, {}});
    else
      add(judgement, *same);
  }
  return all;
}

std::string who(const Remark& remark) { return fmt::format("{}", fmt::join(remark.rules, ", ")); }

std::string what(const Remark& remark) {
  const Judgement& first = remark.first;
  std::string text =
      remark.rules.size() > 1 && of_what(first.measured).empty() ? first.measured.fault : sentence(first);
  if (const std::string need = need_text(first); !need.empty()) text += "; " + need;
  if (!remark.likewise.empty()) text += fmt::format("; likewise {}", fmt::join(remark.likewise, ", "));
  return text;
}

}  // namespace replayeval::reports::gate
