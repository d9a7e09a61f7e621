#include "reports/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "reports/figure_files.h"
#include "reports/recall_heatmap.h"
#include "reports/results_io.h"

namespace replayeval::reports {
namespace {

// Okabe and Ito's colours: told apart by colour-blind readers, too.
constexpr std::array colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};

struct Plot {
  std::string stem;
  std::string title;
  std::string data;               // what the script plots: blocks parted by two blank lines, one an arm
  std::string settings;           // gnuplot commands of this plot alone
  std::vector<std::size_t> arms;  // by number in the results, which decides the colour in all figures
  std::string style;              // e.g. "using 1:2:3:4 with yerrorlines"
};

double percent_of_perplexity(double log_likelihood_delta) { return 100.0 * std::expm1(-log_likelihood_delta); }

std::vector<std::string> arm_names(const Results& results) {
  std::vector<std::string> names;
  for (const nlohmann::json& arm : results.arms) names.push_back(arm.at("name").get<std::string>());
  return names;
}

Plot position_plot(const Results& results, const Workload& workload) {
  Plot plot{.stem = safe_name(workload.name) + "-perplexity_by_position",
            .title = "Perplexity delta by position in the window",
            .data = "# place  ΔPPL %  low  high\n",
            .settings =
                "set ylabel 'ΔPPL %'\nset xlabel 'position in the window (tokens)'\nset xzeroaxis lt 1 lc '#888888'\n",
            .arms = {},
            .style = "using 1:2:3:4 with yerrorlines"};
  const std::vector<std::string> names = arm_names(results);
  for (std::size_t a = 0; a < names.size(); ++a) {
    const std::string& arm = names[a];
    std::string block;
    for (std::size_t i = 0; i < workload.positions.size(); ++i) {
      const auto found = workload.positions[i].delta.find(arm);
      if (found == workload.positions[i].delta.end()) continue;
      const Delta& delta = found->second;
      // Side by side, so that bars do not hide each other. A fall of log-likelihood is a rise of perplexity.
      block += fmt::format("{} {} {} {}\n", static_cast<double>(i) + 0.05 * static_cast<double>(plot.arms.size()),
                           percent_of_perplexity(delta.value), percent_of_perplexity(delta.high.value_or(delta.value)),
                           percent_of_perplexity(delta.low.value_or(delta.value)));
    }
    if (block.empty()) continue;
    plot.data += fmt::format("{}\n\n", block);
    plot.arms.push_back(a);
  }
  std::string tics;
  for (std::size_t i = 0; i < workload.positions.size(); ++i) {
    const PositionBucket& bucket = workload.positions[i];
    tics += fmt::format("{}'{}–{}' {}", i == 0 ? "" : ", ", bucket.begin, bucket.end - 1, i);
  }
  plot.settings += fmt::format("set xtics rotate by -30 ({})\nset xrange [-0.5:{}]\n", tics,
                               static_cast<double>(workload.positions.size()) - 0.3);
  return plot;
}

Plot state_error_plot(const Results& results, const Workload& workload, const std::string& depth) {
  Plot plot{.stem = fmt::format("{}-state_error_{}", safe_name(workload.name), depth),
            .title = fmt::format("State error of the worst layer, {}", depth == "gold" ? "against float64" : depth),
            .data = "# tokens decoded  relative Frobenius error\n",
            .settings =
                "set logscale y\nset format y '%.0e'\nset xrange [0:*]\nset ylabel 'relative Frobenius error'\n"
                "set xlabel 'tokens decoded'\n",
            .arms = {},
            .style = "using 1:2 with linespoints"};
  const std::vector<std::string> names = arm_names(results);
  for (std::size_t a = 0; a < names.size(); ++a) {
    const std::string& arm = names[a];
    std::map<std::int64_t, double> worst;
    for (const StateError& error : workload.state_errors) {
      if (error.arm == arm && error.depth == depth) {
        worst[error.position] = std::max(worst[error.position], error.relative_frobenius);
      }
    }
    std::string block;
    for (const auto& [position, error] : worst) {
      if (error > 0.0) block += fmt::format("{} {}\n", position, error);  // zero has no place on a logarithmic axis
    }
    if (block.empty()) continue;
    plot.data += fmt::format("{}\n\n", block);
    plot.arms.push_back(a);
  }
  return plot;
}

FigureFiles files_of(const Plot& plot, const std::vector<std::string>& names) {
  FigureFiles figure{
      .stem = plot.stem, .title = plot.title, .data = plot.arms.empty() ? "" : plot.data, .commands = {}};
  figure.commands = fmt::format(
      "set title {} noenhanced\nset key outside right top noenhanced\nset grid lc '#dddddd'\nset tics "
      "nomirror\n{}plot ",
      gnuplot_quoted(plot.title), plot.settings);
  for (std::size_t i = 0; i < plot.arms.size(); ++i) {
    figure.commands += fmt::format("{}{} index {} {} lw 1.6 pt {} ps 0.6 lc '{}' title {}", i == 0 ? "" : ", \\\n     ",
                                   gnuplot_quoted(plot.stem + ".dat"), i, plot.style, 4 + plot.arms[i] % 10,
                                   colours[plot.arms[i] % colours.size()], gnuplot_quoted(names[plot.arms[i]]));
  }
  return figure;
}

std::vector<FigureFiles> figures_of(const Results& results, const Workload& workload) {
  const std::vector<std::string> names = arm_names(results);
  std::vector<FigureFiles> figures = {files_of(position_plot(results, workload), names)};
  for (const char* depth : {"gold", "propagated", "local"})
    figures.push_back(files_of(state_error_plot(results, workload, depth), names));
  for (FigureFiles& heatmap : recall_heatmaps(results, workload)) figures.push_back(std::move(heatmap));
  return figures;
}

}  // namespace

Figures draw_figures(const Results& results, const std::filesystem::path& folder) {
  Figures figures;
  for (const Workload& workload : results.workloads) {
    for (const FigureFiles& figure : figures_of(results, workload)) {
      if (figure.data.empty() || !figures.note.empty()) continue;  // a complaint of one is a complaint of all
      std::error_code failure;
      std::filesystem::create_directories(folder / "figures", failure);
      if (failure)
        throw ResultsError(fmt::format("{}: cannot be made: {}", (folder / "figures").string(), failure.message()));
      figures.note = draw_figure(figure, folder / "figures");
      if (figures.note.empty()) {
        figures.drawn.push_back(
            {.file = "figures/" + figure.stem + ".svg", .title = figure.title, .workload = workload.name});
      }
    }
  }
  return figures;
}

}  // namespace replayeval::reports
