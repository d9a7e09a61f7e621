#include "reports/generation_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/markdown.h"
#include "reports/metric_names.h"
#include "reports/results_io.h"
#include "reports/table.h"
#include "tests/reports/sample_results.h"

namespace replayeval::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Metric plain(double value, std::int64_t n = 32) { return {value, {}, {}, n}; }
Delta delta(double value, double p) { return {value, value - 0.125, value + 0.125, p, 0.95, "paired"}; }

// The sample run's arms, of which two have generated.
Results generation_results() {
  Results results = sample_results();
  results.workloads.clear();
  Workload& made = results.workloads.emplace_back();
  made.name = "tales";
  made.kind = "generation";
  made.data = nlohmann::json::parse(R"({"sources": [{"name": "heldout"}], "sequences": 32, "prompts": 16, "repeats": 2,
    "max_tokens": 1024, "temperature": 1.0, "mode": "stepwise", "prompt": "prefill",
    "tokens_per_second_method": "by steps",
    "degeneration_p": {"replay_bfloat16": {"looped": 0.001, "truncated": 0.5, "repeated_3grams": 0.75}}})");
  for (const char* arm : {"exact_float32", "replay_bfloat16"})
    made.arms[arm].metrics = {{names::length, plain(512.5)},        {names::truncated, plain(0.25)},
                              {names::looped, plain(0.125)},        {names::repeated_3grams, plain(0.0625)},
                              {names::compression_ratio, plain(2)}, {names::looped_to_end, plain(0.0)}};
  made.deltas["replay_bfloat16"] = {
      {names::looped, delta(0.25, 0.0005)}, {names::truncated, delta(0.0625, 0.25)}, {names::length, delta(3, 0.5)}};
  made.divergence["replay_bfloat16"] = {{names::identical, {0.375, 0.25, 0.5, 32}},
                                        {names::first_divergence_median, plain(212, 20)},
                                        {names::edit_share, plain(0.5)}};
  made.agreement = {{"replay_bfloat16", 1, 1.0}, {"replay_bfloat16", 1024, 0.375}};
  return results;
}

TEST(GenerationTable, ComesBackFromJson) {
  const nlohmann::json written = to_json(generation_results());
  EXPECT_EQ(to_json(results_from_json(written)), written);
  ASSERT_EQ(results_from_json(written).workloads[0].agreement.size(), 2U);
  EXPECT_EQ(results_from_json(written).workloads[0].agreement[1].same, 0.375);
  nlohmann::json changed = written;
  changed["workloads"][0]["agreement"][0]["arm"] = "nobody";
  EXPECT_THROW(results_from_json(changed), ResultsError);
  changed = written;
  changed["workloads"][0]["agreement"][0]["same"] = 1.5;
  EXPECT_THROW(results_from_json(changed), ResultsError);
  changed = written;
  changed["workloads"][0]["agreement"][0].erase("step");
  EXPECT_THROW(results_from_json(changed), ResultsError);
}

TEST(GenerationTable, StandsInTableAndReport) {
  const Results results = generation_results();
  const std::string table = summary_table(results, {});
  for (const char* part :
       {"heldout: 32 sequences of at most 1,024 tokens: 16 prompts × 2, temperature 1", "looped %", "37.5", "212",
        "degenerates more:", "looped +25 pt [+12, +38]", "with all arms in one batch"})
    EXPECT_THAT(table, HasSubstr(part)) << table;
  EXPECT_THAT(table, Not(HasSubstr("perplexity")));
  const std::string report = markdown_report(results, {});
  for (const char* part : {"### Degeneration", "| looped % | `replay_bfloat16` | 12.50 |",
                           "### Agreement with the baseline", "| 1,024 |", "[25.0, 50.0]", "Tokens/s: by steps."})
    EXPECT_THAT(report, HasSubstr(part)) << report;
  EXPECT_THAT(report, Not(HasSubstr("Began at a tie")));  // drawn
}

std::string first_line_with(const std::string& text, const std::string& part) {
  const std::size_t begin = text.rfind('\n', text.find(part)) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// A column that stands under another's name is not seen by tests of its values.
TEST(GenerationTable, ColumnsHaveTheNamesOfTheirValues) {
  const Results results = generation_results();
  const Workload& made = results.workloads[0];
  const std::string table = generation_table(results, made).render(200, false);
  EXPECT_EQ(first_line_with(table, "length"),
            "arm                      length  truncated %  looped %  3-grams %  compression  identical %  parts after");
  EXPECT_EQ(first_line_with(table, "replay_b"),
            "replay_bfloat16          512.50         25.0      12.5       6.25         2.00         37.5          212");
  const std::string report = markdown_report(results, {});
  EXPECT_THAT(report, HasSubstr("| sign | arm | value | Δ [interval] | p | p (Holm) |\n"));
  EXPECT_THAT(report, HasSubstr("| looped % | `replay_bfloat16` | 12.50 | +25 pt [+12, +38] | 5.0e-04 | 0.0010 |\n"));
  EXPECT_THAT(report,
              HasSubstr("| arm | sequences | identical % | interval | first divergence, median | mean | edit distance, "
                        "mean | edit share | began at a tie % |\n"));
  EXPECT_THAT(report, HasSubstr("| `replay_bfloat16` | 32 | 37.5 | [25.0, 50.0] | 212 | – | – | 0.500 | – |\n"));
  std::string titles;
  const Table across = degeneration_by_arm(results, made);
  for (const Text& title : across.titles()) titles += title.plain() + "|";
  EXPECT_EQ(titles, "arm|length|Δ|truncated %|Δ points|looped %|Δ points|repeated 3-grams %|Δ points|compression|Δ|");
}

TEST(GenerationTable, WhatIsConstantIsLeftOut) {
  Results results = generation_results();
  Workload& made = results.workloads[0];
  EXPECT_FALSE(runs_to_the_limit(made)) << "an older file that does not say";
  made.data["end_tokens"] = {2};
  EXPECT_FALSE(runs_to_the_limit(made));
  EXPECT_THAT(markdown_report(results, {}), HasSubstr("| `truncated` |"));
  made.data["end_tokens"] = nlohmann::json::array();
  made.data["stop"] = {"\n\n"};
  EXPECT_FALSE(runs_to_the_limit(made)) << "a text that ends them";
  made.data["stop"] = nlohmann::json::array();
  ASSERT_TRUE(runs_to_the_limit(made));
  const std::string report = markdown_report(results, {}), table = summary_table(results, {});
  for (const std::string& text : {report, table}) {
    EXPECT_THAT(text, HasSubstr("32 sequences of 1,024 tokens, the same for every arm, as no token ends them: 16 "));
    EXPECT_THAT(text, HasSubstr("looped"));
    for (const char* part : {"| length", "`length`", "runcated", " length "}) EXPECT_THAT(text, Not(HasSubstr(part)));
  }
  EXPECT_EQ(degeneration_by_arm(results, made).titles().size(), 7U);
  for (const auto& [metric, title] : share_signs(made)) EXPECT_NE(metric, names::truncated);
}

TEST(GenerationTable, TheVerdictIsOfWhatIsBeyondChance) {
  Results results = generation_results();
  Workload& made = results.workloads[0];
  const auto verdict_of = [&] { return verdict(made, "replay_bfloat16"); };
  EXPECT_EQ(verdict_of().change, Change::worse);
  EXPECT_THAT(verdict_of().text,
              HasSubstr("37.5 % of sequences are the baseline's, the others part from it after 212"));
  EXPECT_THAT(verdict_of().text, Not(HasSubstr("truncated")));
  made.deltas["replay_bfloat16"][names::looped].value = -0.25;
  EXPECT_EQ(verdict_of().change, Change::better);
  made.data["degeneration_p"]["replay_bfloat16"]["truncated"] = 0.01;
  EXPECT_EQ(verdict_of().change, Change::unknown);
  EXPECT_THAT(verdict_of().text, HasSubstr("signs disagree: truncated"));
  made.data["degeneration_p"]["replay_bfloat16"] = {{"looped", 0.06}, {"length", 0.001}};  // length is no sign
  EXPECT_EQ(verdict_of().change, Change::imprecise) << "looped is known to 12.5 points";
  EXPECT_THAT(verdict_of().text, HasSubstr("too few sequences to tell: looped "));
  Delta& looped = made.deltas["replay_bfloat16"][names::looped];
  looped.low = -0.03;
  looped.high = 0.04;
  EXPECT_EQ(verdict_of().change, Change::none);
  made.data["weights"] = "random";
  EXPECT_EQ(verdict_of().change, Change::unknown);
  made.divergence["replay_bfloat16"][names::identical].value = 1.0;
  EXPECT_EQ(verdict_of().change, Change::identical);
  EXPECT_EQ(verdict(made, "replay_float32").text, "not compared with the baseline");
}

}  // namespace
}  // namespace replayeval::reports
