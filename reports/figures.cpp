#include "reports/figures.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "reports/curves.h"
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
  std::string description;    // for those who cannot see it
  std::string columns;        // what the data file's are
  std::string settings;       // gnuplot commands of this plot alone
  std::string style;          // e.g. "using 1:2:3:4 with yerrorlines"
  std::vector<Curve> curves;  // blocks of the data file, parted by two blank lines
};

Plot position_plot(const Results& results, const Workload& workload) {
  Plot plot{
      .stem = safe_name(workload.name) + "-perplexity_by_position",
      .title = fmt::format("Perplexity delta by position in the window, {}", workload.name),
      .description = fmt::format("A curve an arm: its perplexity against that of {} in percent, by the position of "
                                 "the token in its window, with confidence intervals. Above zero is worse.",
                                 results.baseline),
      .columns = "place  ΔPPL %  low  high",
      .settings =
          "set ylabel 'ΔPPL %'\nset xlabel 'position in the window (tokens)'\nset xzeroaxis lt 1 lc '#888888'\n",
      .style = "using 1:2:3:4 with yerrorlines",
      .curves = perplexity_by_position(results, workload)};
  for (std::size_t i = 0; i < plot.curves.size(); ++i)  // side by side, so that bars do not hide each other
    for (Curve::Point& point : plot.curves[i].points) point.x += 0.05 * static_cast<double>(i);
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
  return {.stem = fmt::format("{}-state_error_{}", safe_name(workload.name), depth),
          .title = fmt::format("State error of the worst layer, {}, {}", depth == "gold" ? "against float64" : depth,
                               workload.name),
          .description =
              "A curve an arm: the relative Frobenius error of its states, in the layer where that is largest, "
              "by the number of tokens decoded, on a logarithmic axis.",
          .columns = "tokens decoded  relative Frobenius error",
          .settings =
              "set logscale y\nset format y '%.0e'\nset xrange [0:*]\nset ylabel 'relative Frobenius error'\n"
              "set xlabel 'tokens decoded'\n",
          .style = "using 1:2 with linespoints",
          .curves = state_error_by_position(results, workload, depth)};
}

std::string data_of(const Plot& plot) {
  std::string data = plot.curves.empty() ? "" : "# " + plot.columns + "\n";
  const bool intervals = plot.style.find("1:2:3:4") != std::string::npos;
  for (const Curve& curve : plot.curves) {
    for (const Curve::Point& point : curve.points)
      data += fmt::format("{} {}", point.x, point.y) +
              (intervals ? fmt::format(" {} {}\n", point.low.value_or(point.y), point.high.value_or(point.y)) : "\n");
    data += "\n\n";
  }
  return data;
}

FigureFiles files_of(const Plot& plot) {
  FigureFiles figure{
      .stem = plot.stem, .title = plot.title, .description = plot.description, .data = data_of(plot), .commands = {}};
  figure.commands = fmt::format(
      "set title {} noenhanced\nset key outside right top noenhanced\nset grid lc '#dddddd'\nset tics "
      "nomirror\n{}plot ",
      gnuplot_quoted(plot.title), plot.settings);
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const Curve& curve = plot.curves[i];
    figure.commands += fmt::format("{}{} index {} {} lw 1.6 pt {} ps 0.6 lc '{}' title {}", i == 0 ? "" : ", \\\n     ",
                                   gnuplot_quoted(plot.stem + ".dat"), i, plot.style, 4 + curve.arm % 10,
                                   colours[curve.arm % colours.size()], gnuplot_quoted(curve.name));
  }
  return figure;
}

std::vector<FigureFiles> figures_of(const Results& results, const Workload& workload) {
  std::vector<FigureFiles> figures = {files_of(position_plot(results, workload))};
  for (const char* depth : {"gold", "propagated", "local"})
    figures.push_back(files_of(state_error_plot(results, workload, depth)));
  for (FigureFiles& heatmap : recall_heatmaps(results, workload)) figures.push_back(std::move(heatmap));
  if (const std::string run = results.config.is_object() ? results.config.value("name", "") : ""; !run.empty())
    for (FigureFiles& figure : figures) figure.description += fmt::format(" Run: {}.", run);
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
