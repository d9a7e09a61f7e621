#include "reports/html/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reports/document.h"
#include "reports/html/blocks.h"
#include "reports/html/figure.h"
#include "reports/html/markup.h"

namespace replayeval::reports::html {
namespace {

struct Outcome {
  Change change;
  const char* words;
};

constexpr std::array<Outcome, 6> outcomes{{{Change::worse, "worse"},
                                           {Change::better, "better by more than noise"},
                                           {Change::none, "no measurable change"},
                                           {Change::identical, "identical"},
                                           {Change::imprecise, "too few to tell"},
                                           {Change::unknown, "not decided"}}};

using Found = std::vector<const Finding*>;

Found of_workload(const std::vector<Finding>& findings, const std::string& run, const std::string& workload) {
  Found found;
  for (const Finding& finding : findings)
    if (finding.run == run && finding.workload == workload) found.push_back(&finding);
  return found;
}

std::size_t count(const Found& found, Change change) {
  return static_cast<std::size_t>(std::count_if(
      found.begin(), found.end(), [&](const Finding* finding) { return finding->verdict.change == change; }));
}

Text count_text(std::size_t n) { return n == 0 ? "" : std::to_string(n); }

// Of what is worse, and how much of it is a trace.
Text worse_text(const Found& found) {
  const std::size_t n = count(found, Change::worse);
  const auto traces = static_cast<std::size_t>(std::count_if(found.begin(), found.end(), [&](const Finding* finding) {
    return finding->verdict.change == Change::worse && finding->verdict.trace();
  }));
  if (n == 0) return "";
  const std::string of_these = traces == n ? "all" : std::to_string(traces);
  return Text(traces == 0 ? std::to_string(n) : fmt::format("{} ({} a trace)", n, of_these))
      .with(traces == n ? Tint::warning : Tint::bad);
}

Text line_of(const Finding& finding, bool with_place) {
  const Text arm = finding.arm.empty() ? Text("All arms") : strong(finding.arm);
  const std::string place = with_place ? fmt::format("{}, {}: ", finding.run, finding.workload) : "";
  return (Text(place) + arm + (": " + finding.verdict.text)).with(tint_of(finding.verdict));
}

// Lists of one run, under headings of the level that is given.
std::string lists_of(const Run& run, const std::vector<Finding>& findings, const char* heading) {
  std::string markup;
  for (const Workload& workload : run.results.workloads) {
    Bullets list;
    for (const Finding* finding : of_workload(findings, run.name, workload.name))
      list.items.push_back(line_of(*finding, false));
    if (list.items.empty()) continue;
    markup += text_element(heading, {}, fmt::format("{} ({})", workload.name, workload.kind)) + "\n" + blocks({list});
  }
  return markup;
}

// Beyond noise: what is worse first, the largest changes first.
std::string what_stands_out(const std::vector<Finding>& findings) {
  Found beyond;
  for (const Finding& finding : findings)
    if (finding.verdict.change == Change::worse || finding.verdict.change == Change::better) beyond.push_back(&finding);
  if (beyond.empty()) return blocks({Paragraph{"No arm is beyond noise."}});
  std::stable_sort(beyond.begin(), beyond.end(), [](const Finding* a, const Finding* b) {
    const bool first = a->verdict.change == Change::worse, second = b->verdict.change == Change::worse;
    return first != second ? first : a->verdict.size > b->verdict.size;
  });
  Bullets list;
  for (const Finding* finding : beyond) list.items.push_back(line_of(*finding, true));
  return text_element("h3", {}, "Beyond noise") + "\n" + blocks({list});
}

}  // namespace

std::string verdict_line(const std::vector<Finding>& findings, const std::string& id) {
  const Verdict overall = overall_verdict(findings);
  const Tint tint = tint_of(overall);
  const char* tone = tint == Tint::good  ? "good"
                     : tint == Tint::bad ? "bad"
                     : tint == Tint::dim ? "neutral"
                                         : "warning";
  Attributes attributes = {{"class", fmt::format("verdict {}", tone)}};
  if (!id.empty()) attributes.emplace_back("id", id);
  return text_element("p", attributes, overall.text) + "\n";
}

std::string summary_section(const std::vector<Run>& runs, const std::vector<Finding>& findings) {
  if (runs.size() == 1) return "";
  std::string tables;
  for (const Run& run : runs) {
    Table table({"workload", "worse", "better", "no change", "identical", "unclear"});
    for (const Workload& workload : run.results.workloads) {
      const Found found = of_workload(findings, run.name, workload.name);
      table.add_row({fmt::format("{} ({})", workload.name, workload.kind), worse_text(found),
                     count_text(count(found, Change::better)), count_text(count(found, Change::none)),
                     count_text(count(found, Change::identical)),
                     count_text(count(found, Change::imprecise) + count(found, Change::unknown))});
    }
    if (!table.empty()) tables += element("div", {}, text_element("h3", {}, run.name) + "\n" + table_of(table)) + "\n";
  }
  return blocks({Paragraph{
             "How many arms of a run came out how against its baseline, exact arms and A/A controls included; the "
             "sentence above counts the arms that replay alone. No change: none that can be measured. Unclear: too few "
             "documents or answers to tell, or random weights. A trace: a change of perplexity below 0.01 %."}}) +
         side_by_side(tables);
}

std::string findings_section(const std::vector<Run>& runs, const std::vector<Finding>& findings) {
  if (runs.size() == 1) return lists_of(runs.front(), findings, "h3");
  std::string lists;
  for (const Run& run : runs) lists += folded("All findings of " + run.name, lists_of(run, findings, "h4"));
  return lists.empty() ? "" : what_stands_out(findings) + lists;
}

std::string counts_line(const std::vector<Finding>& findings, const std::string& run, const std::string& workload) {
  const Found found = of_workload(findings, run, workload);
  std::string text;
  for (const Outcome& outcome : outcomes)
    if (const std::size_t n = count(found, outcome.change); n > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, outcome.words);
  return text.empty() ? "" : fmt::format("of {} compared {}", found.size(), text);
}

}  // namespace replayeval::reports::html
