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

// Decode speed of a run's arms over its baseline's, and where it was measured.
struct Speeds {
  std::map<std::string, double> ratios;  // by the run's names
  std::string source;
};

nlohmann::json without_name(nlohmann::json arm) {
  arm.erase("name");
  return arm;
}

// The arm of a benchmark that computes what this one does, whatever either is called; nullptr without one.
const nlohmann::json* counterpart(const ModelBench& bench, const nlohmann::json& arm) {
  const nlohmann::json* found = nullptr;
  for (const nlohmann::json& other : bench.arms) {
    if (other == arm) return &other;  // a control beside its equal
    if (found == nullptr && without_name(other) == without_name(arm)) found = &other;
  }
  return found;
}

std::map<std::string, double> ratios_at(const ModelBench& bench, const Results& results, std::int64_t batch) {
  std::map<std::string, double> ratios;
  for (const nlohmann::json& arm : results.arms) {
    const nlohmann::json* timed = counterpart(bench, arm);
    if (timed == nullptr) continue;
    for (const ModelBench::Row& row : bench.rows)
      if (const auto ratio = bench.speed_ratio(row); row.batch == batch && ratio && row.arm == timed->at("name"))
        ratios[arm.at("name")] = *ratio;
  }
  return ratios;
}

// Whether any of them is not the baseline, nor its equal.
bool more_than_controls(const std::map<std::string, double>& ratios, const Results& results) {
  nlohmann::json baseline;
  for (const nlohmann::json& arm : results.arms)
    if (arm.at("name") == results.baseline) baseline = without_name(arm);
  return std::any_of(results.arms.begin(), results.arms.end(), [&](const nlohmann::json& arm) {
    return ratios.contains(arm.at("name")) && without_name(arm) != baseline;
  });
}

bool has_the_baseline(const ModelBench& bench, const Results& results) {
  return std::any_of(results.arms.begin(), results.arms.end(), [&](const nlohmann::json& arm) {
    const nlohmann::json* timed = arm.at("name") == results.baseline ? counterpart(bench, arm) : nullptr;
    return timed != nullptr && timed->at("name") == bench.baseline;
  });
}

// A whole-model benchmark of arms that the run has, of its architecture, at the largest batch.
Speeds benchmarked(const Run& run, const std::vector<BenchFile>& benches) {
  for (const BenchFile& file : benches) {
    const auto* bench = std::get_if<ModelBench>(&file.bench);
    if (bench == nullptr || bench->rows.empty() || !has_the_baseline(*bench, run.results)) continue;
    if (bench->model_type != run.results.checkpoint.value("model_type", "")) continue;
    std::int64_t batch = 0;
    for (const ModelBench::Row& row : bench->rows) batch = std::max(batch, row.batch);
    std::map<std::string, double> ratios = ratios_at(*bench, run.results, batch);
    if (!more_than_controls(ratios, run.results)) continue;
    const bool own = bench->parameters == run.results.checkpoint.value("parameters", std::int64_t{0});
    return {std::move(ratios), fmt::format("whole-model decoding{}, batch {}, {}",
                                           own ? ""
                                               : fmt::format(" of another {} of {} parameters", bench->model_type,
                                                             count_text(bench->parameters)),
                                           count_text(batch), bench->device)};
  }
  return {};
}

// Of decode steps, as a server takes them. How fast this evaluation scored its tokens is no such speed.
Speeds speeds_of(const Run& run, const std::vector<BenchFile>& benches) {
  if (Speeds speeds = benchmarked(run, benches); !speeds.ratios.empty()) return speeds;
  for (const Workload& workload : run.results.workloads) {
    if (workload.kind != "generation") continue;
    Speeds speeds{.ratios = {}, .source = "decode steps of " + workload.name + ", all arms in one batch"};
    for (const ArmSummary& arm : summarise(run.results, workload))
      if (arm.speed_ratio && *arm.speed_ratio > 0.0) speeds.ratios[arm.name] = *arm.speed_ratio;
    if (!speeds.ratios.empty()) return speeds;
  }
  return {};
}

std::string pareto_figure(const Run& run, const Workload& workload, const std::vector<BenchFile>& benches,
                          const std::string& id, bool name_run) {
  const Speeds speeds = speeds_of(run, benches);
  svg::ScatterPlot plot;
  Table data({"arm", "mean KL, nats a token", "decode speed over baseline"});
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
  plot.title = {
      id, title,
      fmt::format("A mark an arm: to the right it decodes faster than the baseline, further down its predictions are "
                  "nearer to the baseline's. The dashed line joins the arms that no other beats in both. Speed: "
                  "{}.",
                  speeds.source)};
  plot.x_label = "decode speed over the baseline's";
  plot.y_label = "mean KL from the baseline, nats a token";
  return figure({svg::scatter_plot(plot), title,
                 "Decode speed: " + speeds.source + ". Dashed: arms that none beats in both.", table_of(data)});
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
