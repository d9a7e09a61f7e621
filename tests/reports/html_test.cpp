// The parts of the HTML report; whole pages are looked at in a browser (test_html_report.py).
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "reports/findings.h"
#include "reports/html/blocks.h"
#include "reports/html/by_scale.h"
#include "reports/html/markup.h"
#include "reports/html/report.h"
#include "reports/html/short_names.h"
#include "reports/html/svg/axis.h"
#include "reports/html/svg/heat_map.h"
#include "reports/html/svg/line_chart.h"
#include "reports/html/svg/row_plot.h"
#include "reports/html/svg/scatter_plot.h"
#include "tests/reports/sample_results.h"
#include "tests/temporary_folder.h"

namespace replayeval::reports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST(Escaped, LeavesNothingThatCouldBeMarkup) {
  EXPECT_EQ(html::escaped("<b a=\"x\">&amp;"), "&lt;b a=&quot;x&quot;&gt;&amp;amp;");
  EXPECT_EQ(html::escaped("Δ – ⁻⁶\n\t"), "Δ – ⁻⁶\n\t");
  EXPECT_EQ(html::escaped(std::string("a\0b\x7f\x1b", 5)), "a\uFFFDb\uFFFD\uFFFD");
  EXPECT_EQ(html::escaped("\xC3(\xFF"), "\uFFFD(\uFFFD") << "no UTF-8";
  EXPECT_EQ(html::text_element("p", {{"title", "\"><x>"}}, "<x>"), "<p title=\"&quot;&gt;&lt;x&gt;\">&lt;x&gt;</p>");
}

TEST(Coordinate, HasTwoDecimalsAndNoNegativeZero) {
  EXPECT_EQ(html::coordinate(1.0 / 3.0), "0.33");
  EXPECT_EQ(html::coordinate(-0.001), "0");
  EXPECT_EQ(html::coordinate(360.0), "360");
}

std::vector<std::string> labels_of(const html::svg::Axis& axis) {
  std::vector<std::string> labels;
  for (const html::svg::Tick& tick : axis.ticks()) labels.push_back(tick.label);
  return labels;
}

TEST(Axis, LinearTicksAreRound) {
  using html::svg::Axis;
  EXPECT_THAT(labels_of(Axis::linear(0.0, 2048.0, 0.0, 100.0, 4)), ElementsAre("0", "1,000", "2,000"));
  EXPECT_THAT(labels_of(Axis::linear(-0.013, 0.011, 0.0, 100.0)),
              ElementsAre("-0.010", "-0.005", "0", "0.005", "0.010"));
  EXPECT_THAT(labels_of(Axis::linear(-3e-6, 2e-6, 0.0, 100.0)),
              ElementsAre("-3e-06", "-2e-06", "-1e-06", "0", "1e-06", "2e-06"));
  EXPECT_THAT(labels_of(Axis::linear(0.0, 0.0, 0.0, 100.0)), Not(SizeIs(0))) << "a range of nothing is widened";
  EXPECT_THAT(labels_of(Axis::linear(1e20, 1e20 + 65536.0, 0.0, 100.0)), Not(SizeIs(0))) << "and one below rounding";
}

TEST(Axis, LogarithmicTicksArePowersOfTenAndRise) {
  using html::svg::Axis;
  EXPECT_THAT(labels_of(Axis::logarithmic(3e-7, 0.02, 0.0, 100.0, 3)), ElementsAre("10⁻⁷", "10⁻⁵", "0.001", "0.1"));
  const Axis one = Axis::logarithmic(0.01, 0.01, 0.0, 100.0);
  EXPECT_THAT(labels_of(one), ElementsAre("0.001", "0.01"));
  EXPECT_DOUBLE_EQ(one.place(0.01), 100.0);
  const Axis decades = Axis::logarithmic(1e-4, 1.0, 0.0, 100.0);
  EXPECT_NEAR(decades.place(1e-2), 50.0, 1e-9);
  EXPECT_DOUBLE_EQ(decades.place(1e-9), 0.0) << "clamped";
}

TEST(WithRoom, TheLastLabelStaysAndNoneTouch) {
  using html::svg::Label;
  std::vector<Label> labels;
  for (int i = 0; i < 20; ++i) labels.push_back({18.0 * i + 9.0, std::to_string(1000 + i)});
  const std::vector<Label> kept = html::svg::with_room(labels);
  ASSERT_THAT(kept, Not(SizeIs(0)));
  EXPECT_EQ(kept.back().text, "1019");
  EXPECT_LE(kept.back().at + html::svg::width_of("1019") / 2.0, html::svg::width);
  for (std::size_t i = 1; i < kept.size(); ++i) EXPECT_GE(kept[i].at - kept[i - 1].at, html::svg::width_of("1019"));
}

TEST(Fitted, CutsCharactersNotBytes) {
  EXPECT_EQ(html::svg::fitted("ΔΔΔΔ", 4 * html::svg::character_width), "ΔΔΔΔ");
  EXPECT_EQ(html::svg::fitted("ΔΔΔΔΔ", 4 * html::svg::character_width), "ΔΔΔ…");
}

TEST(HeatScale, ZeroHasTheMiddleOfATwoSidedScaleToItself) {
  const html::svg::HeatScale scale = html::svg::HeatScale::two_sided(8.0);
  EXPECT_EQ(scale.css_class(0.0), "d4");
  EXPECT_EQ(scale.css_class(0.1), "d5");
  EXPECT_EQ(scale.css_class(-0.1), "d3");
  EXPECT_EQ(scale.css_class(8.0), "d8");
  EXPECT_EQ(scale.css_class(-100.0), "d0");
  const html::svg::HeatScale logarithmic = html::svg::HeatScale::logarithmic(1e-9, 1.0);
  EXPECT_EQ(logarithmic.css_class(1e-9), "h0");
  EXPECT_EQ(logarithmic.css_class(1.0), "h8");
  EXPECT_EQ(logarithmic.css_class(3e-5), "h4");
  EXPECT_EQ(html::svg::HeatScale::linear(5.0, 5.0).css_class(5.0), "h4") << "a scale of one value";
}

TEST(ByScale, PartsWhatWouldLieFlat) {
  const auto size = [](double value) { return std::abs(value); };
  EXPECT_THAT(html::by_scale(std::vector<double>{0.0, 1.0, -0.5, 1e-3, 2e-3}, size),
              ElementsAre(ElementsAre(1.0, -0.5), ElementsAre(0.0, 1e-3, 2e-3)));
  EXPECT_THAT(html::by_scale(std::vector<double>{0.0, 0.0}, size), ElementsAre(ElementsAre(0.0, 0.0)));
  EXPECT_THAT(html::by_scale(std::vector<double>{}, size), SizeIs(0));
}

TEST(Frontier, HoldsWhatNothingBeats) {
  const std::vector<html::svg::ScatterPlot::Mark> marks = {{0, "baseline", 1.0, 0.0},
                                                           {1, "slow and far", 0.9, 0.1},
                                                           {2, "fast", 1.5, 0.2},
                                                           {3, "beaten by fast", 1.4, 0.3},
                                                           {4, "between", 1.2, 0.1}};
  std::vector<std::string> names;
  for (const auto& mark : html::svg::frontier(marks)) names.push_back(mark.name);
  EXPECT_THAT(names, ElementsAre("baseline", "between", "fast"));
}

TEST(Drawings, NothingToDrawIsNothing) {
  EXPECT_EQ(html::svg::line_chart({}), "");
  EXPECT_EQ(html::svg::scatter_plot({}), "");
  EXPECT_EQ(html::svg::heat_map({}), "");
  html::svg::RowPlot words;
  words.groups.push_back({"a heading", {{}}});
  EXPECT_EQ(html::svg::row_plot(words), "") << "rows without a mark";
}

TEST(LineChart, PointsLieWhereTheAxesSay) {
  html::svg::LineChart chart;
  chart.title = {"id", "title", "description"};
  chart.curves = {{0, "arm", {{0.0, 0.0, {}, {}}, {10.0, 1.0, {}, {}}}}};
  const std::string svg = html::svg::line_chart(chart);
  // The plot is 170 high from 26 on, and ends 10 before the right edge at 360.
  EXPECT_THAT(svg, HasSubstr("196L350 26\""));
  EXPECT_THAT(svg, HasSubstr("aria-labelledby=\"id-title id-desc\""));
}

TEST(HeatMap, NeighboursOfOneColourAreOnePath) {
  html::svg::HeatMap map;
  map.title = {"id", "title", "description"};
  map.columns = {"0", "1", "2", "3"};
  map.rows = {"0"};
  map.cells = {{0, 0, "h1", ""}, {1, 0, "h1", ""}, {2, 0, "h5", ""}, {3, 0, "h1", ""}};
  const std::string svg = html::svg::heat_map(map);
  EXPECT_THAT(svg, HasSubstr("<path class=\"heat h1\" d=\"M0 0h2v1h-2zM3 0h1v1h-1z\">"));
  EXPECT_THAT(svg, HasSubstr("<path class=\"heat h5\" d=\"M2 0h1v1h-1z\">"));
}

TEST(PartsOf, CutsAtHeadings) {
  const auto parts =
      html::parts_of({Heading{3, "one"}, Paragraph{"a"}, Heading{3, "two"}, Paragraph{"b"}, Paragraph{"c"}});
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[1].title, "two");
  EXPECT_THAT(parts[1].blocks, SizeIs(2));
  EXPECT_THROW(html::parts_of({Paragraph{"a"}}), std::invalid_argument);
}

Finding finding(const std::string& arm, bool replay, Change change, const std::string& text = "text") {
  return {"run", "heldout", "perplexity", arm, replay, {.change = change, .text = text}};
}

Finding perplexity_finding(const std::string& arm, double size) {
  return {"run", "heldout", "perplexity", arm, true, {Change::worse, "perplexity rises", size}};
}

TEST(OverallVerdict, SpeaksOfReplayAndNotOfTheOtherArms) {
  const Verdict said =
      overall_verdict({finding("exact_bf16", false, Change::worse), finding("replay", true, Change::identical),
                       finding("replay_bf16", true, Change::none)});
  EXPECT_EQ(said.change, Change::none);
  EXPECT_EQ(said.text,
            "Replay costs no measurable quality in any of 2 comparisons: 1 is identical to the baseline, 1 shows no "
            "measurable change.");
}

TEST(OverallVerdict, NamesALossOfAScoreBeforeOneOfPerplexity) {
  const Verdict said = overall_verdict({finding("replay", true, Change::none), perplexity_finding("replay_f16", 0.02),
                                        finding("replay_bf16", true, Change::worse, "answers are lost")});
  EXPECT_EQ(said.change, Change::worse);
  EXPECT_THAT(said.text, HasSubstr("Replay costs measurable quality in 2 of 3 comparisons, most replay_bf16 on heldout "
                                   "(answers are lost); 1 shows no measurable change."));
}

// Enough tokens resolve a change that nobody would call one.
TEST(OverallVerdict, ATraceIsNotCalledALoss) {
  const Verdict traces =
      overall_verdict({perplexity_finding("replay", 2e-8), perplexity_finding("replay_f16", 0.9e-4)});
  EXPECT_EQ(traces.change, Change::worse) << "a change all the same";
  EXPECT_EQ(tint_of(traces), Tint::warning);
  EXPECT_THAT(traces.text, HasSubstr("Replay costs no more than a trace of quality in any of 2 comparisons, most "
                                     "replay_f16 on heldout (perplexity rises)"));
  std::vector<Finding> three = {perplexity_finding("replay", 2e-8), perplexity_finding("replay_bf16", 0.001),
                                perplexity_finding("replay_f16", 0.0002)};
  three.back().run = "other";
  EXPECT_THAT(
      overall_verdict(three).text,
      HasSubstr("in 2 of 3 comparisons, most replay_bf16 on run: heldout (perplexity rises), and a trace in 1."));
}

TEST(OverallVerdict, WhatIsUndecidedIsNotCountedAsFine) {
  EXPECT_EQ(overall_verdict({finding("replay", true, Change::unknown, "random weights")}).text,
            "Nothing can be said of the one comparison made: random weights.");
  const Verdict said =
      overall_verdict({finding("replay", true, Change::unknown), finding("replay_bf16", true, Change::none)});
  EXPECT_THAT(said.text, HasSubstr("in 1 of 2 comparisons: 1 shows no measurable change, 1 cannot be decided"));
}

TEST(OverallVerdict, WhatIsBetterIsADeviation) {
  const Verdict said =
      overall_verdict({finding("replay", true, Change::none), finding("replay_bf16", true, Change::better)});
  EXPECT_EQ(said.change, Change::better);
  EXPECT_EQ(said.text,
            "Replay costs no measurable quality in any of 2 comparisons: 1 shows no measurable change, 1 moves it to "
            "the better by more than noise.");
}

TEST(OverallVerdict, TooFewDocumentsAreNotFine) {
  EXPECT_EQ(overall_verdict({finding("replay", true, Change::imprecise, "too few")}).change, Change::imprecise);
  EXPECT_THAT(
      overall_verdict({finding("replay", true, Change::none), finding("replay_bf16", true, Change::imprecise)}).text,
      HasSubstr("in 1 of 2 comparisons: 1 shows no measurable change, 1 is of too few documents to tell"));
}

TEST(OverallVerdict, SaysHowManyChanceMakesLookWorse) {
  std::vector<Finding> many(72, finding("replay", true, Change::none));
  many.push_back(finding("replay_f32", true, Change::identical));
  for (std::size_t i = 0; i < 72; ++i) many[i].verdict.chance = 0.025;
  EXPECT_THAT(overall_verdict(many).text,
              HasSubstr("; of the 72 with an interval 1.8 are expected to look worse by chance alone."));
  many.resize(8);
  EXPECT_THAT(overall_verdict(many).text, Not(HasSubstr("chance")));
}

TEST(OverallVerdict, BrokenChurnIsALoss) {
  Finding churn = finding("", false, Change::worse, "1 of 9 checks do not hold");
  churn.kind = "churn";
  const Verdict said = overall_verdict({finding("replay", true, Change::none), churn});
  EXPECT_EQ(said.change, Change::worse);
  EXPECT_THAT(said.text, HasSubstr("; heldout: 1 of 9 checks do not hold."));
  EXPECT_EQ(overall_verdict({}).text, "No arm was compared with a baseline.");
}

TEST(Findings, OneAnArmAndWorkload) {
  const std::vector<Finding> all = findings({run_of(sample_results(), "folder")});
  EXPECT_THAT(all, SizeIs(5)) << "six arms, one of them the baseline";
  EXPECT_EQ(all.front().run, "demo");
  EXPECT_EQ(all.front().verdict.change, Change::identical);
  EXPECT_EQ(all.back().verdict.change, Change::worse);
  EXPECT_TRUE(all.back().replay);
}

TEST(MakeNamesUnique, NumbersWhatIsThereTwice) {
  std::vector<reports::Run> runs(3);
  for (reports::Run& run : runs) run.name = "demo";
  runs[1].name = "demo (2)";
  make_names_unique(runs);
  EXPECT_EQ(runs[0].name, "demo");
  EXPECT_EQ(runs[1].name, "demo (2)");
  EXPECT_EQ(runs[2].name, "demo (3)");
}

TEST(MakeNamesUnique, TellsFoldersApart) {
  std::vector<reports::Run> runs(3);
  for (reports::Run& run : runs) run.name = "demo";
  runs[0].path = "results/monday/demo/";
  runs[1].path = "results/tuesday/demo";
  runs[2].name = "other";
  make_names_unique(runs);
  EXPECT_EQ(runs[0].name, "demo (monday/demo)");
  EXPECT_EQ(runs[1].name, "demo (tuesday/demo)");
  EXPECT_EQ(runs[2].name, "other");
}

TEST(HtmlReport, SideBySideNamesTellRunsApart) {
  std::vector<reports::Run> runs;
  for (const char* name :
       {"h200-tiny-nemotron-h-buffer-lengths", "h200-tiny-qwen3-next-buffer-lengths", "h200-tiny-nemotron-h-float32"}) {
    runs.push_back(run_of(sample_results(), name));
    runs.back().name = name;
  }
  const std::string page = html_report(runs, {}), workload = " · " + runs[0].results.workloads[0].name + "</text>";
  std::set<std::string> names;
  for (std::size_t at = page.find("<text class=\"name\""); at != std::string::npos;
       at = page.find("<text class=\"name\"", at + 1)) {
    const std::size_t begin = page.find('>', at) + 1;
    const std::string text = page.substr(begin, page.find("</text>", begin) + 7 - begin);
    if (text.ends_with(workload)) names.insert(text.substr(0, text.size() - workload.size()));
  }
  EXPECT_THAT(names, SizeIs(3)) << "a name a run, the same in every row";
}

TEST(RowPlot, ValuesMakeRoomForNames) {
  html::svg::RowPlot plot;
  plot.title = {"id", "title", "description"};
  plot.groups.push_back({"", {{}, {}}});
  html::svg::Row& row = plot.groups[0].rows[0];
  row.name = std::string(20, 'n');
  row.value = "+0.1 [-0.2, +0.3]";
  row.centre = 0.1;
  EXPECT_THAT(html::svg::row_plot(plot), HasSubstr("y=\"15\" text-anchor=\"end\">+0.1")) << "beside the name";
  plot.groups[0].rows[1].name = std::string(40, 'm');
  plot.groups[0].rows[1].value = row.value;
  const std::string svg = html::svg::row_plot(plot);
  EXPECT_THAT(svg, HasSubstr(">" + std::string(40, 'm') + "</text>")) << "a name is whole";
  EXPECT_THAT(svg, HasSubstr("y=\"29\" text-anchor=\"end\">+0.1")) << "below it, in every row";
}

TEST(RowPlot, WhatIsTooTallForASheetComesInParts) {
  html::svg::RowPlot plot;
  plot.title = {"id", "title", "description"};
  plot.zero_line = true;
  for (int g = 0; g < 10; ++g) {
    html::svg::RowGroup& group = plot.groups.emplace_back();
    group.heading = "group " + std::to_string(g);
    for (int r = 0; r < 4; ++r) {
      html::svg::Row row;
      row.name = std::to_string(10 * g + r);
      row.centre = 10 * g + r;
      group.rows.push_back(row);
    }
  }
  html::svg::RowPlot small = plot;
  small.groups.resize(2);
  EXPECT_THAT(html::svg::sheets_of(small), SizeIs(1));
  EXPECT_EQ(html::svg::sheets_of(small)[0].title.title, "title");
  const auto sheets = html::svg::sheets_of(plot);
  ASSERT_THAT(sheets, SizeIs(2));
  EXPECT_EQ(sheets[0].title.title, "title (1 of 2)");
  EXPECT_EQ(sheets[1].title.id, "id-2");
  std::vector<std::string> names;
  for (const auto& sheet : sheets)
    for (const auto& group : sheet.groups)
      for (const auto& row : group.rows) names.push_back(row.name);
  EXPECT_THAT(names, SizeIs(40)) << "every row once";
  for (const auto& sheet : sheets)
    for (const auto& group : sheet.groups) EXPECT_THAT(group.rows, SizeIs(4)) << "groups stay whole";
  html::svg::RowPlot one = plot;
  one.groups.resize(1);
  one.groups[0].rows.resize(60, one.groups[0].rows[0]);
  const auto parted = html::svg::sheets_of(one);
  ASSERT_THAT(parted, SizeIs(3)) << "but for one that no sheet holds";
  EXPECT_EQ(parted[2].groups[0].heading, "group 0") << "and then it keeps its heading";
  const auto labels = [](const html::svg::RowPlot& sheet) {
    const std::string svg = html::svg::row_plot(sheet);
    std::string all;
    for (std::size_t at = svg.find("class=\"tick\""); at != std::string::npos; at = svg.find("class=\"tick\"", at + 1))
      all += svg.substr(svg.find('>', at), svg.find('<', at) - svg.find('>', at));
    return all;
  };
  EXPECT_EQ(labels(sheets[0]), labels(sheets[1])) << "one axis";
  EXPECT_THAT(labels(sheets[0]), HasSubstr(">50"));
  for (const auto& sheet : sheets) {
    const std::string svg = html::svg::row_plot(sheet);
    const std::size_t at = svg.find("viewBox=\"0 0 360 ") + 17;
    EXPECT_LE(std::stod(svg.substr(at)), 900.0);
  }
}

TEST(ShortNames, TellApartWhatTheyName) {
  using html::short_names;
  const auto width = [](std::size_t characters) {
    return html::svg::character_width * static_cast<double>(characters);
  };
  EXPECT_THAT(short_names({"a-long-name", "b"}, width(11)), ElementsAre("a-long-name", "b"));
  EXPECT_THAT(short_names({"a-long-name-x", "a-long-name-y", "a-long-name-x"}, width(10)),
              ElementsAre("…x", "…y", "…x"));
  EXPECT_THAT(short_names({"h200-nemotron-h-lengths", "h200-qwen3-next-lengths"}, width(11)),
              ElementsAre("…nemo…ngths", "…qwen…ngths"));
  EXPECT_THAT(short_names({"aaaaaaaaaabbbbbbbbbb-1", "aaaaaaaaaabbbbbbbbbb-2"}, width(8)), ElementsAre("…1", "…2"));
  EXPECT_THAT(short_names({"xxxxxxxxAyyyyyyyy", "xxxxxxxxByyyyyyyy"}, width(8)), ElementsAre("x…yy (1)", "x…yy (2)"))
      << "numbers where no end tells";
  EXPECT_THAT(short_names({"ΔΔΔΔΔΔΔΔΔΔ"}, width(7)), ElementsAre("ΔΔΔ…ΔΔΔ")) << "characters, not bytes";
}

TEST(HtmlReport, IdsAreUniqueOverSeveralRuns) {
  std::vector<reports::Run> runs = {run_of(sample_results(), "a"), run_of(sample_results(), "b")};
  make_names_unique(runs);
  const std::string page = html_report(runs, {});
  std::vector<std::string> ids;
  for (std::size_t at = page.find(" id=\""); at != std::string::npos; at = page.find(" id=\"", at + 1))
    ids.push_back(page.substr(at + 5, page.find('"', at + 5) - at - 5));
  std::sort(ids.begin(), ids.end());
  EXPECT_GT(ids.size(), 40U);
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

TEST(HtmlReport, UnwritableFolder) {
  const TemporaryFolder folder;
  folder.write("file", "");
  EXPECT_THAT(
      message_of([&] { write_html_report({run_of(sample_results(), "a")}, {}, folder.path() / "file" / "sub"); }),
      HasSubstr("file/sub: cannot be made"));
}

}  // namespace
}  // namespace replayeval::reports
