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

// With the metric where the rule's is a glob.
std::string label(const Judgement& judgement) {
  const Measurement& measured = judgement.measured;
  return measured.metric == judgement.rule.metric ? of_what(measured) : subject(measured);
}

// Names that a file brings must not look like lines of their own, or change the terminal.
std::string on_one_line(std::string text) {
  for (char& letter : text)
    if (const auto code = static_cast<unsigned char>(letter); code < 0x20 || code == 0x7f) letter = '?';
  return text;
}

// Whoever reads the log wants to see its end, too.
constexpr std::size_t most_likewise = 12;

std::string likewise_text(const Remark& remark) {
  const std::size_t shown = std::min(remark.likewise.size(), most_likewise);
  const std::string text =
      fmt::format("; likewise {}", fmt::join(remark.likewise.begin(), remark.likewise.begin() + shown, ", "));
  return shown == remark.likewise.size() ? text : fmt::format("{} and {} more", text, remark.likewise.size() - shown);
}

void add_new(const std::string& text, std::vector<std::string>& texts) {
  if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
}

void add(const Judgement& judgement, Remark& remark) {
  add_new(judgement.rule.name, remark.rules);
  if (const std::string other = label(judgement); other != label(remark.first)) add_new(other, remark.likewise);
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
  return on_one_line(remark.likewise.empty() ? text : text + likewise_text(remark));
}

}  // namespace replayeval::reports::gate
