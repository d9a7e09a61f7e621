#include "reports/generation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include "reports/metric_names.h"
#include "reports/numbers.h"
#include "reports/sections.h"
#include "reports/summary.h"

namespace replayeval::reports {
namespace {

constexpr const char* absent = "–";

struct Sign {
  const char *metric, *title, *unit;
  bool bad_if_larger;  // and then a sign of degeneration, not only of another text
  double scale() const { return *unit == '\0' ? 1.0 : 100.0; }
};

constexpr std::array<Sign, 8> signs{{
    {names::length, "length", "", false},
    {names::truncated, "truncated", "pt", true},
    {names::looped, "looped", "pt", true},
    {names::looped_to_end, "looped to the end", "pt", true},
    {names::repeated_3grams, "repeated 3-grams", "pt", true},
    {names::compression_ratio, "compression ratio", "", true},
    {names::repeated_span, "repeated span", "", false},
    {names::repeated_share, "repeated span share", "pt", false},
}};

const Sign* sign_of(std::string_view metric) {
  return std::find_if(signs.begin(), signs.end(), [&](const Sign& sign) { return sign.metric == metric; });
}

template <typename T>
const T* find_in(const std::map<std::string, std::map<std::string, T>>& all, const std::string& arm,
                 const std::string& metric) {
  const auto values = all.find(arm);
  if (values == all.end()) return nullptr;
  const auto found = values->second.find(metric);
  return found == values->second.end() ? nullptr : &found->second;
}

const Metric* value_of(const Workload& workload, const std::string& arm, const std::string& metric) {
  const auto result = workload.arms.find(arm);
  if (result == workload.arms.end()) return nullptr;
  const auto found = result->second.metrics.find(metric);
  return found == result->second.metrics.end() ? nullptr : &found->second;
}

// Without the sign that spread_text() gives differences; rounded with its interval, where it has one.
std::string value_text(const Metric* metric, double scale, int digits) {
  if (metric == nullptr) return absent;
  std::optional<double> error = half_width(metric->low, metric->high);
  if (error) *error *= scale;
  return rounded(scale * metric->value, error, digits);
}

// Of whole numbers.
std::string median_text(const Metric* median) {
  return median == nullptr ? absent : fmt::format("{:g}", median->value);
}

std::string delta_text(const Delta& delta, const Sign& sign) {
  const Spread text = spread(delta.value, delta.low, delta.high, sign.scale());
  std::string shown = text.value + (*sign.unit == '\0' ? "" : fmt::format(" {}", sign.unit));
  if (!text.low.empty()) shown += fmt::format(" [{}, {}]", text.low, text.high);
  return shown;
}

std::string share_text(const Metric* share) {
  if (share == nullptr) return absent;
  return share->value == 1.0 ? "100" : significant(100.0 * share->value, 3);
}

std::optional<double> adjusted_p(const Workload& workload, const std::string& arm, const std::string& metric) {
  const auto place = nlohmann::json::json_pointer("/degeneration_p") / arm / metric;
  if (!workload.data.contains(place)) return std::nullopt;
  return workload.data.at(place).get<double>();
}

// The bad signs whose delta is beyond chance, up or down.
std::string strayed(const Workload& workload, const std::string& arm, bool upward) {
  std::string text;
  for (const Sign& sign : signs) {
    const Delta* delta = find_in(workload.deltas, arm, sign.metric);
    const std::optional<double> p = adjusted_p(workload, arm, sign.metric);
    if (!sign.bad_if_larger || delta == nullptr || !p || !delta->confidence) continue;
    if (*p >= 1.0 - *delta->confidence || (delta->value > 0.0) != upward) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", sign.title, delta_text(*delta, sign));
  }
  return text;
}

// "61.3 % of sequences are the baseline's, the others part from it after 212 tokens (median)".
std::string agreement_text(const Workload& workload, const std::string& arm) {
  const Metric* identical = find_in(workload.divergence, arm, names::identical);
  const Metric* first = find_in(workload.divergence, arm, names::first_divergence_median);
  if (identical == nullptr) return "agreement not measured";
  std::string text = fmt::format("{} % of sequences are the baseline's", share_text(identical));
  if (first != nullptr)
    text += fmt::format(", the others part from it after {:g} token{} (median)", first->value,
                        first->value == 1.0 ? "" : "s");
  return text;
}

// The signs that say something of this workload.
std::vector<Sign> signs_of(const Workload& workload) {
  std::vector<Sign> kept;
  std::copy_if(signs.begin(), signs.end(), std::back_inserter(kept),
               [&](const Sign& sign) { return !is_constant(workload, sign.metric); });
  return kept;
}

std::vector<std::string> compared_arms(const Results& results) {
  std::vector<std::string> arms;
  for (const nlohmann::json& arm : results.arms)
    if (arm.at("name") != results.baseline) arms.push_back(arm.at("name"));
  return arms;
}

Table degeneration_table(const Results& results, const Workload& workload) {
  Table table({"sign", "arm", "value", "Δ [interval]", "p", "p (Holm)"}, {1, 3});
  for (const Sign& sign : signs_of(workload))
    for (const ArmSummary& arm : summarise(results, workload)) {
      const Metric* value = value_of(workload, arm.name, sign.metric);
      if (value == nullptr) continue;
      const Delta* delta = arm.is_baseline ? nullptr : find_in(workload.deltas, arm.name, sign.metric);
      const std::optional<double> p = arm.is_baseline ? std::nullopt : adjusted_p(workload, arm.name, sign.metric);
      table.add_row({std::string(sign.title) + (*sign.unit == '\0' ? "" : " %"), code(arm.name),
                     value_text(value, sign.scale(), 4), delta == nullptr ? "" : delta_text(*delta, sign),
                     delta == nullptr || !delta->p_value ? "" : significant(*delta->p_value, 2),
                     p ? significant(*p, 2) : ""});
    }
  return table;
}

Table agreement_table(const Results& results, const Workload& workload) {
  Table table({"arm", "sequences", "identical %", "interval", "first divergence, median", "mean", "edit distance, mean",
               "edit share", "began at a tie %"});
  for (const std::string& arm : compared_arms(results)) {
    const auto value = [&](const char* metric) { return find_in(workload.divergence, arm, metric); };
    const Metric* identical = value(names::identical);
    if (identical == nullptr) continue;
    const std::string interval =
        identical->low && identical->high
            ? fmt::format("[{}, {}]", significant(100.0 * *identical->low, 3), significant(100.0 * *identical->high, 3))
            : absent;
    const Metric* ties = value(names::began_at_tie);
    table.add_row({code(arm), identical->n ? count_text(*identical->n) : absent, share_text(identical), interval,
                   median_text(value(names::first_divergence_median)),
                   value_text(value(names::first_divergence_mean), 1.0, 4),
                   value_text(value(names::edit_distance_mean), 1.0, 4), value_text(value(names::edit_share), 1.0, 3),
                   ties == nullptr ? absent : share_text(ties)});
  }
  return table;
}

Table steps_table(const Results& results, const Workload& workload) {
  std::set<std::int64_t> steps;
  for (const AgreementStep& row : workload.agreement) steps.insert(row.step);
  std::vector<Text> titles = {"tokens"};
  for (const std::int64_t step : steps) titles.emplace_back(count_text(step));
  Table table(titles);
  for (const std::string& arm : steps.empty() ? std::vector<std::string>() : compared_arms(results)) {
    std::vector<Text> cells = {code(arm)};
    for (const std::int64_t step : steps) {
      cells.emplace_back(absent);
      for (const AgreementStep& row : workload.agreement)
        if (row.step == step && row.arm == arm) cells.back() = fmt::format("{:.1f}", 100.0 * row.same);
    }
    table.add_row(cells);
  }
  return table;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> share_signs(const Workload& workload) {
  std::vector<std::pair<std::string, std::string>> shares;
  for (const Sign& sign : signs_of(workload))
    if (sign.bad_if_larger && *sign.unit != '\0') shares.emplace_back(sign.metric, sign.title);
  return shares;
}

Table degeneration_by_arm(const Results& results, const Workload& workload) {
  constexpr std::array shown = {names::length, names::truncated, names::looped, names::repeated_3grams,
                                names::compression_ratio};
  std::vector<Text> titles = {"arm"};
  const std::vector<Sign> all = signs_of(workload);
  std::vector<const Sign*> columns;
  for (const Sign& sign : all)
    if (std::find(shown.begin(), shown.end(), std::string_view(sign.metric)) != shown.end()) {
      columns.push_back(&sign);
      titles.emplace_back(
          std::string(sign.metric == std::string_view(names::compression_ratio) ? "compression" : sign.title) +
          (*sign.unit == '\0' ? "" : " %"));
      titles.emplace_back(*sign.unit == '\0' ? "Δ" : "Δ points");
    }
  Table table(titles);
  for (const ArmSummary& arm : summarise(results, workload)) {
    std::vector<Text> row = {code(arm.name)};
    for (const Sign* sign : columns) {
      const Delta* delta = arm.is_baseline ? nullptr : find_in(workload.deltas, arm.name, sign->metric);
      row.emplace_back(value_text(value_of(workload, arm.name, sign->metric), sign->scale(), 4));
      row.emplace_back(delta == nullptr ? ""
                                        : spread_text(spread(delta->value, delta->low, delta->high, sign->scale())));
    }
    table.add_row(std::move(row));
  }
  return table;
}

TextTable generation_table(const Results& results, const Workload& workload) {
  const bool by_length = !runs_to_the_limit(workload);
  std::vector<Column> columns = {{"arm", Align::left, 0}};
  if (by_length) columns.insert(columns.end(), {{"length", Align::right, 6}, {"truncated %", Align::right, 5}});
  columns.insert(columns.end(), {{"looped %", Align::right, 9},
                                 {"3-grams %", Align::right, 7},
                                 {"compression", Align::right, 8},
                                 {"identical %", Align::right, 0},
                                 {"parts after", Align::right, 4}});
  TextTable table(columns);
  for (const ArmSummary& arm : summarise(results, workload)) {
    const auto sign = [&](const char* metric, double scale) {
      return value_text(value_of(workload, arm.name, metric), scale, 3);
    };
    const auto agreement = [&](const char* metric) { return find_in(workload.divergence, arm.name, metric); };
    std::vector<Cell> row = {{arm.name + (arm.is_baseline ? " *" : ""), arm.is_baseline ? Tint::bold : Tint::none}};
    if (by_length) {
      row.push_back({value_text(value_of(workload, arm.name, names::length), 1.0, 5)});
      row.push_back({sign(names::truncated, 100.0)});
    }
    row.insert(row.end(), {{sign(names::looped, 100.0)},
                           {sign(names::repeated_3grams, 100.0)},
                           {sign(names::compression_ratio, 1.0)},
                           {arm.is_baseline ? "" : share_text(agreement(names::identical))},
                           {arm.is_baseline ? "" : median_text(agreement(names::first_divergence_median))}});
    table.add_row(std::move(row));
  }
  return table;
}

bool has_generated(const Workload& workload) {
  return workload.data.is_object() && workload.data.contains("sequences") && workload.data.contains("max_tokens");
}

bool runs_to_the_limit(const Workload& workload) {
  const nlohmann::json& data = workload.data;
  const auto none = [&](const char* key) { return data[key].is_array() && data[key].empty(); };
  return has_generated(workload) && data.contains("end_tokens") && none("end_tokens") &&
         (!data.contains("stop") || none("stop"));
}

bool is_constant(const Workload& workload, std::string_view metric) {
  return (metric == names::length || metric == names::truncated) && runs_to_the_limit(workload);
}

std::string generation_line(const Workload& workload) {
  const nlohmann::json& data = workload.data;
  const auto number = [&](const char* key) { return data.value(key, std::int64_t{0}); };
  const double temperature = data.value("temperature", 0.0);
  std::string text = fmt::format("{} sequences of {}{} tokens{}: {} prompts", count_text(number("sequences")),
                                 runs_to_the_limit(workload) ? "" : "at most ", count_text(number("max_tokens")),
                                 runs_to_the_limit(workload) ? ", the same for every arm, as no token ends them" : "",
                                 count_text(number("prompts")));
  if (number("repeats") > 1) text += fmt::format(" × {}", count_text(number("repeats")));
  return text + (temperature == 0.0 ? ", greedy" : fmt::format(", temperature {:g}", temperature));
}

Verdict generation_verdict(const Workload& workload, const std::string& arm) {
  const Metric* identical = find_in(workload.divergence, arm, names::identical);
  if (identical == nullptr) return {.change = Change::unknown, .text = "not compared with the baseline"};
  if (identical->value == 1.0)
    return {.change = Change::identical, .text = "identical to the baseline: every sequence, token for token"};
  if (workload.data.is_object() && workload.data.value("weights", "") == "random")
    return {.change = Change::unknown,
            .text = "random weights: texts differ from the baseline's, which says nothing about a model's quality"};
  const std::string up = strayed(workload, arm, true), down = strayed(workload, arm, false);
  const std::string agreement = "; " + agreement_text(workload, arm);
  const Delta* looped = find_in(workload.deltas, arm, names::looped);
  // Holm's adjustment holds all of an arm's signs together to the confidence of one.
  const double chance = looped == nullptr ? 0.0 : chance_of_worse(*looped);
  if (up.empty() && down.empty()) {
    if (looped != nullptr && says_nothing(*looped, widest_share))
      return {.change = Change::imprecise,
              .text = "too few sequences to tell: looped " + delta_text(*looped, *sign_of(names::looped)) + agreement,
              .chance = chance};
    return {.change = Change::none, .text = "no measurable degeneration" + agreement, .chance = chance};
  }
  if (down.empty()) return {.change = Change::worse, .text = "degenerates more: " + up + agreement, .chance = chance};
  if (up.empty()) return {.change = Change::better, .text = "degenerates less: " + down + agreement, .chance = chance};
  return {
      .change = Change::unknown, .text = "signs disagree: " + up + " against " + down + agreement, .chance = chance};
}

namespace sections {

Blocks generation(const Results& results, const Workload& workload) {
  if (!has_generated(workload)) return {};
  Blocks blocks = {
      Heading{3, "Degeneration"}, Paragraph{generation_line(workload) + "."}, degeneration_table(results, workload),
      Paragraph{
          prose(std::string("Means over sequences; Δ is paired, with intervals over prompts. ") +
                (runs_to_the_limit(workload) ? "" : "*Truncated*: ran to the limit. ") +
                "*Looped*: at least 4 repeats of one span, 40 tokens or more in all. *Repeated span*: the longest "
                "one's tokens, and its occurrences' share of the text. *Compression ratio*: of the text, zlib. pt: "
                "percentage points. Holm: adjusted for an arm's eight deltas.")}};
  const Table agreement = agreement_table(results, workload);
  if (agreement.empty()) return blocks;
  Text text =
      "First divergence: tokens before it, of the sequences that are not identical; edit distances in tokens, of the "
      "same; edit share: over the longer one's length, of all.";
  if (workload.data.value("temperature", 0.0) == 0.0)
    text += prose(" *Began at a tie*: either arm had two equal logits to choose from there.");
  append(blocks, {Heading{3, "Agreement with the baseline"}, agreement, Paragraph{text}});
  if (const Table steps = steps_table(results, workload); !steps.empty())
    append(blocks, {Paragraph{"Sequences that are still the baseline's after so many tokens, in percent:"}, steps});
  return blocks;
}

}  // namespace sections
}  // namespace replayeval::reports
