#include "reports/recall_heatmap.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>
#include <string>

#include "reports/figures.h"
#include "reports/markdown.h"
#include "reports/recall_grid.h"
#include "tests/temporary_folder.h"

namespace replayeval::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

RecallCell cell(const std::string& task, std::int64_t length, std::optional<double> depth, double baseline, double arm,
                bool signal = true) {
  RecallCell cell;
  cell.task = task;
  cell.kind = task;
  cell.length = length;
  cell.depth = depth;
  cell.documents = 8;
  cell.signal = signal;
  cell.accuracy["exact"].value = baseline;
  cell.accuracy["replay"].value = arm;
  cell.delta["replay"].value = arm - baseline;
  return cell;
}

Results recall_results() {
  Results results;
  results.checkpoint = {{"path", "c"}, {"model_type", "nemotron_h"}};
  results.config = {{"name", "x"}};
  results.baseline = "exact";
  for (const char* name : {"replay", "exact"})
    results.arms.push_back({{"name", name}, {"executor", "exact"}, {"state_storage", {{"dtype", "float32"}}}});
  Workload& workload = results.workloads.emplace_back();
  workload.data = nlohmann::json::object();
  workload.name = "recall it";
  workload.kind = "recall";
  workload.recall = {cell("needle", 4096, 0.9, 0.75, 0.5), cell("needle", 1024, 0.1, 1.0, 1.0),
                     cell("needle", 1024, 0.9, 0.875, 1.0), cell("needle", 4096, 0.1, 0.125, 0.25, false),
                     cell("copying", 1024, std::nullopt, 0.5, 0.5)};
  return results;
}

TEST(RecallHeatmap, PlacesCellsByLengthAndDepth) {
  const Results results = recall_results();
  const auto figures = recall_heatmaps(results, results.workloads[0]);
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].stem, "recall_it-recall-needle");
  // The baseline's accuracy first, then the other arm's delta; the cell without signal is marked so in both.
  EXPECT_THAT(figures[0].data,
              HasSubstr("\n1 1 75 1 75.0 75\n0 0 100 1 100.0 100\n0 1 87.5 1 87.5 87.5\n1 0 12.5 0 12.5 12.5\n\n\n"
                        "1 1 -25 1 -25.0 -12.5\n0 0 0 1 +0.0 0\n0 1 12.5 1 +12.5 12.5\n"
                        "1 0 12.5 0 +12.5 12.5\n"))
      << "the last: what the colour stands for";
  EXPECT_THAT(figures[0].commands, HasSubstr("('1,024' 0, '4,096' 1)"));
  EXPECT_THAT(figures[0].commands, HasSubstr("('0.1' 0, '0.9' 1)"));
  EXPECT_THAT(figures[0].commands, HasSubstr("set cbrange [-50:50]")) << "four answers of eight";
  EXPECT_THAT(figures[1].commands, HasSubstr("('anywhere' 0)"));
  EXPECT_THAT(figures[1].commands, HasSubstr("set cbrange [-50:50]\nset cbtics (-50, 50)\n"))
      << "no difference has no colour";
}

TEST(RecallGrid, ColoursSayWhatTheAnswersCanBear) {
  Results results = recall_results();
  Workload& workload = results.workloads[0];
  workload.recall = {cell("needle", 1024, 0.1, 1.0, 0.75), cell("needle", 2048, 0.1, 1.0, 0.25)};
  RecallCell& few = workload.recall[0];
  few.documents = 4;  // one wrong answer of four
  few.delta["replay"].low = -0.7;
  few.delta["replay"].high = 0.2;
  RecallGrid grid = recall_grids(workload)[0];
  EXPECT_EQ(grid.reach(), 100.0) << "four answers of four";
  EXPECT_EQ(grid.shade(few, "replay"), -25.0) << "the palest quarter";
  EXPECT_EQ(grid.shade(workload.recall[1], "replay"), -25.0) << "without an interval nothing is beyond noise";
  EXPECT_EQ(grid.answers_text(), "answers a cell: 4 at 1,024 tokens, 8 at 2,048");
  workload.recall[1].delta["replay"].low = -0.9;
  workload.recall[1].delta["replay"].high = -0.5;
  EXPECT_EQ(grid.shade(workload.recall[1], "replay"), -75.0);
  EXPECT_EQ(grid.shade(few, "nobody"), std::nullopt);
  for (RecallCell& one : workload.recall) {
    for (auto& [arm, accuracy] : one.accuracy) accuracy.n = 6400;
    for (auto& [arm, delta] : one.delta) delta.value = -0.01;
  }
  EXPECT_EQ(grid.reach(), 10.0) << "one answer of many looks like little";
  EXPECT_EQ(grid.answers_text(), "6,400 answers a cell");
  for (RecallCell& one : workload.recall)
    for (auto& [arm, accuracy] : one.accuracy) accuracy.n = 1;
  EXPECT_EQ(grid.answers_text(), "1 answer a cell");
}

TEST(RecallHeatmap, AWorkloadWithoutRecallHasNone) {
  Results results = recall_results();
  results.workloads[0].recall.clear();
  EXPECT_TRUE(recall_heatmaps(results, results.workloads[0]).empty());
}

TEST(NamedSvg, SaysWhatIsShown) {
  FigureFiles figure;
  figure.title = "A < B";
  figure.description = "\"C\" & D";
  EXPECT_EQ(named_svg("<svg x=\"1\"><title>Gnuplot</title><desc>x</desc><g><title>arm</title></g></svg>", figure),
            "<svg role=\"img\" aria-labelledby=\"title desc\" x=\"1\"><title id=\"title\">A &lt; B</title><desc "
            "id=\"desc\">&quot;C&quot; &amp; D</desc><g><title>arm</title></g></svg>");
  EXPECT_EQ(named_svg("nothing", figure), "nothing");
}

TEST(RecallHeatmap, IsDrawnAndLinked) {
  const TemporaryFolder folder;
  const Results results = recall_results();
  const Figures figures = draw_figures(results, folder.path());
  ASSERT_EQ(figures.note, "");
  ASSERT_EQ(figures.drawn.size(), 2U);
  std::ostringstream svg;
  svg << std::ifstream(folder.path() / figures.drawn[0].file).rdbuf();
  for (const char* part : {"exact: accuracy", "replay: delta", "-25.0", "no signal", "4,096"})
    EXPECT_THAT(svg.str(), HasSubstr(part));
  EXPECT_THAT(svg.str(), HasSubstr("<title id=\"title\">Recall of needle by length and depth; grey: no signal; "
                                   "faint: within noise; 8 answers a cell</title>\n<desc id=\"desc\">A map an arm, "));
  EXPECT_THAT(svg.str(), HasSubstr("<svg role=\"img\" aria-labelledby=\"title desc\""));
  EXPECT_THAT(svg.str(), HasSubstr("Faint: the interval holds zero. Run: x.</desc>"));
  for (const char* of_gnuplot : {"Gnuplot", "GNUPLOT", "using 1:2"}) EXPECT_THAT(svg.str(), Not(HasSubstr(of_gnuplot)));
  EXPECT_GT(std::filesystem::file_size(folder.path() / "figures" / "recall_it-recall-needle.pdf"), 1000U);
  const std::string report = markdown_report(results, figures);
  EXPECT_THAT(report, HasSubstr("](figures/recall_it-recall-needle.svg)"));
  EXPECT_THAT(report, Not(HasSubstr("logarithmic")));
}

}  // namespace
}  // namespace replayeval::reports
