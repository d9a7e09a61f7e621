#include "reports/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "reports/churn_table.h"

namespace replayeval::reports {
namespace {

bool is_churn(const Finding& finding) { return finding.kind == "churn"; }

std::size_t count(const std::vector<Finding>& findings, Change change) {
  return static_cast<std::size_t>(std::count_if(
      findings.begin(), findings.end(), [&](const Finding& finding) { return finding.verdict.change == change; }));
}

// "2 are identical to the baseline, 6 show no measurable change"; nothing of those that the sentence has counted
// already.
std::string counts_text(const std::vector<Finding>& findings, std::optional<Change> counted = {}) {
  struct Words {
    Change change;
    const char *one, *many;
  };
  constexpr Words all_words[] = {
      {Change::identical, "is identical to the baseline", "are identical to the baseline"},
      {Change::none, "shows no measurable change", "show no measurable change"},
      {Change::better, "moves it to the better by more than noise", "move it to the better by more than noise"},
      {Change::worse, "is worse", "are worse"},
      {Change::imprecise, "is of too few documents to tell", "are of too few documents to tell"},
      {Change::unknown, "cannot be decided", "cannot be decided"},
  };
  std::string text;
  for (const Words& words : all_words)
    if (const std::size_t n = count(findings, words.change); n > 0 && words.change != counted)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, n == 1 ? words.one : words.many);
  return text;
}

// How many comparisons would be called worse if all differences were noise, where that is half of one or more.
std::string chance_text(const std::vector<Finding>& compared) {
  double expected = 0.0;
  std::size_t decided = 0;
  for (const Finding& finding : compared) {
    expected += finding.verdict.chance;
    if (finding.verdict.chance > 0.0) ++decided;
  }
  if (expected < 0.5) return "";
  return fmt::format("; of the {} with an interval {:.1f} are expected to look worse by chance alone", decided,
                     expected);
}

// The comparisons that answer the question, churn apart.
std::vector<Finding> comparisons(const std::vector<Finding>& findings, bool replay_only) {
  std::vector<Finding> kept;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(kept),
               [&](const Finding& finding) { return !is_churn(finding) && (finding.replay || !replay_only); });
  return kept;
}

// "replay-bf16 on run: text (perplexity rises slightly: ...)", the run only where there are several
std::string place_of(const Finding& finding, const std::vector<Finding>& all) {
  const bool one_run =
      std::all_of(all.begin(), all.end(), [&](const Finding& other) { return other.run == finding.run; });
  return fmt::format("{} on {}{} ({})", finding.arm, one_run ? "" : finding.run + ": ", finding.workload,
                     finding.verdict.text);
}

// Of what is worse: the first whose size has no scale, else the largest.
const Finding& worst_of(const std::vector<Finding>& compared) {
  const auto size = [](const Finding& finding) {
    return finding.verdict.change == Change::worse ? finding.verdict.size : -1.0;
  };
  return *std::max_element(compared.begin(), compared.end(),
                           [&](const Finding& a, const Finding& b) { return size(a) < size(b); });
}

std::string quality_text(const std::vector<Finding>& compared, const char* subject) {
  const std::size_t n = compared.size(), worse = count(compared, Change::worse);
  const auto traces = static_cast<std::size_t>(std::count_if(compared.begin(), compared.end(), [](const Finding& one) {
    return one.verdict.change == Change::worse && one.verdict.trace();
  }));
  const std::size_t undecided = count(compared, Change::unknown) + count(compared, Change::imprecise);
  const std::string of = n == 1 ? "the one comparison made" : fmt::format("{} comparisons", n);
  const std::string costs = fmt::format("{} {}", subject, *subject == 'R' ? "costs" : "cost");
  if (undecided == n) return fmt::format("Nothing can be said of {}: {}", of, compared.front().verdict.text);
  if (worse > traces) {
    const std::string others = counts_text(compared, Change::worse);
    return fmt::format("{} measurable quality in {} of {}, most {}{}{}{}", costs, worse - traces, of,
                       place_of(worst_of(compared), compared),
                       traces > 0 ? fmt::format(", and a trace in {}", traces) : "", others.empty() ? "" : "; ",
                       others);
  }
  if (traces > 0)
    return fmt::format("{} no more than a trace of quality in any of {}, most {}; {}", costs, of,
                       place_of(worst_of(compared), compared), counts_text(compared));
  return fmt::format("{} no measurable quality in {}{}: {}", costs,
                     undecided > 0 ? fmt::format("{} of ", n - undecided)
                     : n == 1      ? ""
                                   : "any of ",
                     of, counts_text(compared));
}

// A deviation in either direction first; fine is what has been shown to be.
Change change_of(const std::vector<Finding>& compared) {
  for (const Change change : {Change::worse, Change::better})
    if (count(compared, change) > 0) return change;
  if (count(compared, Change::none) + count(compared, Change::identical) > 0) return Change::none;
  return count(compared, Change::imprecise) > 0 ? Change::imprecise : Change::unknown;
}

// The last `count` parts of a path.
std::string tail_of(const std::filesystem::path& path, std::size_t count) {
  std::filesystem::path tail;
  std::filesystem::path rest = path.lexically_normal();
  if (!rest.has_filename()) rest = rest.parent_path();  // a slash at its end
  for (; count > 0 && rest.has_filename(); --count, rest = rest.parent_path())
    tail = tail.empty() ? rest.filename() : rest.filename() / tail;
  return tail.string();
}

// Names of runs that are called alike get as much of their folders as tells them apart.
void add_folders(const std::vector<Run*>& alike) {
  constexpr std::size_t most = 16;
  for (std::size_t count = 1; count <= most; ++count) {
    std::set<std::string> tails;
    for (const Run* run : alike) tails.insert(tail_of(run->path, count));
    if (tails.size() < alike.size()) continue;
    for (Run* run : alike) run->name += fmt::format(" ({})", tail_of(run->path, count));
    return;
  }
}

}  // namespace

Run run_of(const Results& results, const std::filesystem::path& path) {
  const std::string name = results.config.is_object() ? results.config.value("name", "") : "";
  return {name.empty() ? path.filename().string() : name, results, path};
}

void make_names_unique(std::vector<Run>& runs) {
  std::map<std::string, std::vector<Run*>> named;
  for (Run& run : runs) named[run.name].push_back(&run);
  for (const auto& [name, alike] : named)
    if (alike.size() > 1) add_folders(alike);
  std::set<std::string> taken;
  for (Run& run : runs) {
    const std::string name = run.name;
    for (int number = 2; !taken.insert(run.name).second; ++number) run.name = fmt::format("{} ({})", name, number);
  }
}

std::vector<Finding> findings(const std::vector<Run>& runs) {
  std::vector<Finding> all;
  for (const Run& run : runs)
    for (const Workload& workload : run.results.workloads) {
      if (workload.kind == "churn") {
        const bool broken = broken_checks(workload) > 0;
        all.push_back({run.name,
                       workload.name,
                       workload.kind,
                       "",
                       false,
                       {broken ? Change::worse : Change::none, churn_verdict(workload)}});
        continue;
      }
      for (const nlohmann::json& arm : run.results.arms)
        if (const std::string name = arm.at("name"); name != run.results.baseline)
          all.push_back(
              {run.name, workload.name, workload.kind, name, arm.at("executor") == "replay", verdict(workload, name)});
    }
  return all;
}

Verdict overall_verdict(const std::vector<Finding>& findings) {
  const bool any_replay =
      std::any_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.replay; });
  const std::vector<Finding> compared = comparisons(findings, any_replay);
  Verdict overall{.change = Change::unknown, .text = "No arm was compared with a baseline"};
  if (!compared.empty()) {
    overall.text = quality_text(compared, any_replay ? "Replay" : "The arms") + chance_text(compared);
    overall.change = change_of(compared);
    if (overall.change == Change::worse) overall.size = worst_of(compared).verdict.size;
  }
  for (const Finding& finding : findings) {
    if (!is_churn(finding)) continue;
    overall.text += fmt::format("; {}: {}", finding.workload, finding.verdict.text);
    if (finding.verdict.change == Change::worse) overall.change = Change::worse, overall.size = HUGE_VAL;
    if (compared.empty() && overall.change == Change::unknown) overall.change = Change::none;
  }
  overall.text += ".";
  return overall;
}

}  // namespace replayeval::reports
