#include "reports/churn_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "reports/numbers.h"
#include "reports/sections.h"

namespace replayeval::reports {
namespace {

// Checks that differ in batch, or in batch and event, as one: with the smallest of their bounds.
struct Joined {
  ChurnCheck check;
  std::set<std::int64_t> batches;
  bool holds = true;
};

std::vector<Joined> joined(const Workload& workload, bool over_events) {
  std::vector<Joined> rows;
  for (const ChurnCheck& check : workload.churn) {
    auto found = std::find_if(rows.begin(), rows.end(), [&](const Joined& row) {
      return row.check.level == check.level && row.check.arm == check.arm &&
             (over_events || row.check.event == check.event);
    });
    if (found == rows.end()) {
      rows.push_back({check, {check.batch}, check.holds()});
      continue;
    }
    found->check.compared += check.compared;
    found->check.differing += check.differing;
    found->check.max_deviation = std::max(found->check.max_deviation, check.max_deviation);
    found->batches.insert(check.batch);
    if (check.bound) found->check.bound = std::min(*found->check.bound, *check.bound);
    found->holds = found->holds && check.holds();
  }
  return rows;
}

std::string identical_text(const ChurnCheck& check) {
  if (check.differing == 0) return "yes";
  return fmt::format("no: {} of {} differ", count_text(check.differing), count_text(check.compared));
}

std::string bound_text(const ChurnCheck& check) { return check.bound ? significant(*check.bound, 2) : "bits"; }

std::string readable(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

}  // namespace

std::int64_t broken_checks(const Workload& workload) {
  return std::count_if(workload.churn.begin(), workload.churn.end(),
                       [](const ChurnCheck& check) { return !check.holds(); });
}

TextTable churn_table(const Workload& workload) {
  TextTable table({{"level", Align::left, 0},
                   {"arm", Align::left, 0},
                   {"compared", Align::right, 7},
                   {"bit-identical", Align::right, 8},
                   {"max deviation", Align::right, 9},
                   {"bound", Align::right, 10},
                   {"", Align::left, 0}});
  for (const Joined& row : joined(workload, true))
    table.add_row({{row.check.level},
                   {row.check.arm},
                   {count_text(row.check.compared)},
                   {identical_text(row.check)},
                   {significant(row.check.max_deviation, 2)},
                   {bound_text(row.check)},
                   {row.holds ? "holds" : "BROKEN", row.holds ? Tint::good : Tint::bad}});
  return table;
}

std::string churn_line(const Workload& workload) {
  const nlohmann::json& data = workload.data;
  if (!data.contains("sequences") || !data.contains("events")) return "";
  std::vector<std::int64_t> batches;
  for (const nlohmann::json& entry : data["events"]) batches.push_back(entry.at("batch").get<std::int64_t>());
  const auto mixers = data.value("mixers", std::int64_t{0});
  return fmt::format("{} sequences in batches of {}{}", count_text(data["sequences"].get<std::int64_t>()),
                     fmt::join(batches, ", "),
                     mixers == 0 ? "" : fmt::format("; {} mixer{}", mixers, mixers == 1 ? "" : "s"));
}

std::string churn_verdict(const Workload& workload) {
  const auto broken = std::find_if(workload.churn.begin(), workload.churn.end(),
                                   [](const ChurnCheck& check) { return !check.holds(); });
  if (broken == workload.churn.end()) return fmt::format("all {} checks hold", workload.churn.size());
  return fmt::format("{} of {} checks do not hold, the first: {}, {} of arm '{}' at batch {}", broken_checks(workload),
                     workload.churn.size(), broken->level, readable(broken->event), broken->arm, broken->batch);
}

namespace sections {

Blocks churn(const Results& /*results*/, const Workload& workload) {
  if (workload.churn.empty()) return {};
  Table table(
      {"level", "event", "arm", "batches", "compared", "bit-identical", "max deviation", "measured", "bound", "of", ""},
      {1, 2, 9, 10});
  for (const Joined& row : joined(workload, false))
    table.add_row({row.check.level, readable(row.check.event), code(row.check.arm),
                   fmt::format("{}", fmt::join(row.batches, ", ")), count_text(row.check.compared),
                   identical_text(row.check), significant(row.check.max_deviation, 3),
                   row.check.measured ? significant(*row.check.measured, 3) : "",
                   row.check.bound ? significant(*row.check.bound, 3) : "", row.check.bound_from,
                   row.holds ? Text("holds").with(Tint::good) : strong("broken").with(Tint::bad)});
  const bool passed = broken_checks(workload) == 0;
  return {
      Heading{3, "Churn"},
      Paragraph{(passed ? Text("Pass") : strong("Failed")) + (": " + churn_verdict(workload) + ".")},
      Paragraph{prose(
          "*mixer*: outputs (a token each) and states of mixers, given equal inputs, against the sequence by "
          "itself. *prefix*: the tensors that a saved prefix brings back. Both must be equal to the bit. *model*: "
          "log-probabilities of forced tokens against the sequence by itself. *measured*: the largest deviation of the "
          "named exact arm, measured in this run at the same and smaller batch sizes without any event; the bound "
          "is the largest that its deviations lead one to expect of as many sequences.")},
      table};
}

}  // namespace sections
}  // namespace replayeval::reports
