#include "reports/recall_heatmap.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>
#include <string>

#include "reports/figures.h"
#include "reports/markdown.h"
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
  EXPECT_THAT(figures[0].data, HasSubstr("\n1 1 75 1 75.0\n0 0 100 1 100.0\n0 1 87.5 1 87.5\n1 0 12.5 0 12.5\n\n\n"
                                         "1 1 -25 1 -25.0\n0 0 0 1 +0.0\n0 1 12.5 1 +12.5\n1 0 12.5 0 +12.5\n"));
  EXPECT_THAT(figures[0].commands, HasSubstr("('1,024' 0, '4,096' 1)"));
  EXPECT_THAT(figures[0].commands, HasSubstr("('0.1' 0, '0.9' 1)"));
  EXPECT_THAT(figures[0].commands, HasSubstr("set cbrange [-25:25]")) << "the largest delta with a signal";
  EXPECT_THAT(figures[1].commands, HasSubstr("('anywhere' 0)"));
  EXPECT_THAT(figures[1].commands, HasSubstr("set cbrange [-10:10]\nset cbtics (-10, 10)\n"))
      << "no difference has no colour";
}

TEST(RecallHeatmap, AWorkloadWithoutRecallHasNone) {
  Results results = recall_results();
  results.workloads[0].recall.clear();
  EXPECT_TRUE(recall_heatmaps(results, results.workloads[0]).empty());
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
  EXPECT_GT(std::filesystem::file_size(folder.path() / "figures" / "recall_it-recall-needle.pdf"), 1000U);
  const std::string report = markdown_report(results, figures);
  EXPECT_THAT(report, HasSubstr("](figures/recall_it-recall-needle.svg)"));
  EXPECT_THAT(report, Not(HasSubstr("logarithmic")));
}

}  // namespace
}  // namespace replayeval::reports
