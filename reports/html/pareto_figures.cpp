// Quality against speed, an arm a mark.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/curves.h"
#include "reports/html/blocks.h"
#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/scatter_plot.h"
#include "reports/metric_names.h"
#include "reports/numbers.h"
#include "reports/summary.h"

namespace replayeval::reports::html {
namespace {

// Speed of a run's arms over its baseline's, by number, and where it was measured.
struct Speeds {
  std::map<std::string, double> ratios;
  std::string source;
};

// A whole-model benchmark of the run's own arms, at its largest batch.
Speeds benchmarked(const Run& run, const std::vector<BenchFile>& benches) {
  const std::vector<std::string> arms = arm_names(run.results);
  for (const BenchFile& file : benches) {
    const auto* bench = std::get_if<ModelBench>(&file.bench);
    if (bench == nullptr || bench->arms != arms || bench->baseline != run.results.baseline) continue;
    if (bench->model_type != run.results.checkpoint.value("model_type", "")) continue;
    std::int64_t batch = 0;
    for (const ModelBench::Row& row : bench->rows) batch = std::max(batch, row.batch);
    Speeds speeds{.ratios = {}, .source = fmt::format("whole-model decoding, batch {}", count_text(batch))};
    for (const ModelBench::Row& row : bench->rows)
      if (const auto ratio = bench->speed_ratio(row); row.batch == batch && ratio) speeds.ratios[row.arm] = *ratio;
    return speeds;
  }
  return {};
}

Speeds of_workload(const Results& results, const Workload& workload, const std::string& source) {
  Speeds speeds{.ratios = {}, .source = source};
  for (const ArmSummary& arm : summarise(results, workload))
    if (arm.speed_ratio && *arm.speed_ratio > 0.0) speeds.ratios[arm.name] = *arm.speed_ratio;
  return speeds;
}

// The nearest to a server's that there is.
Speeds speeds_of(const Run& run, const Workload& workload, const std::vector<BenchFile>& benches) {
  if (Speeds speeds = benchmarked(run, benches); !speeds.ratios.empty()) return speeds;
  for (const Workload& other : run.results.workloads)
    if (other.kind == "generation")
      if (Speeds speeds = of_workload(run.results, other, "decode steps of " + other.name + ", all arms in one batch");
          !speeds.ratios.empty())
        return speeds;
  return of_workload(run.results, workload, "this evaluation's own speed, not a server's");
}

std::string pareto_figure(const Run& run, const Workload& workload, const std::vector<BenchFile>& benches,
                          const std::string& id, bool name_run) {
  const Speeds speeds = speeds_of(run, workload, benches);
  svg::ScatterPlot plot;
  Table data({"arm", "mean KL, nats a token", "speed over baseline"});
  const std::vector<std::string> arms = arm_names(run.results);
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    const auto speed = speeds.ratios.find(arms[arm]);
    const auto metrics = workload.divergence.find(arms[arm]);
    const bool is_baseline = arms[arm] == run.results.baseline;
    if (speed == speeds.ratios.end() || (!is_baseline && metrics == workload.divergence.end())) continue;
    if (!is_baseline && !metrics->second.contains(names::kl_mean)) continue;
    const double kl = is_baseline ? 0.0 : std::max(0.0, metrics->second.at(names::kl_mean).value);
    plot.marks.push_back({arm, arms[arm], speed->second, kl});
    data.add_row({code(arms[arm]), significant(kl, 3), fmt::format("{:.3f}×", speed->second)});
  }
  if (plot.marks.size() < 2) return "";
  const std::string title = (name_run ? run.name + ", " : "") + workload.name + ": quality against speed";
  plot.title = {id, title,
                "A mark an arm: to the right it decodes faster than the baseline, further down its predictions are "
                "nearer to the baseline's. The dashed line joins the arms that no other beats in both."};
  plot.x_label = "speed over the baseline's";
  plot.y_label = "mean KL from the baseline, nats a token";
  return figure({svg::scatter_plot(plot), title, "Speed: " + speeds.source + ". Dashed: arms that none beats in both.",
                 table_of(data)});
}

}  // namespace

std::string pareto_figures(const std::vector<Run>& runs, const std::vector<BenchFile>& benches) {
  std::string figures;
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (std::size_t w = 0; w < runs[r].results.workloads.size(); ++w)
      figures += pareto_figure(runs[r], runs[r].results.workloads[w], benches, fmt::format("pareto{}-{}", r, w),
                               runs.size() > 1);
  return side_by_side(figures);
}

}  // namespace replayeval::reports::html
