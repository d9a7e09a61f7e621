#include "reports/figure_files.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "reports/atomic_file.h"
#include "reports/gnuplot.h"

namespace replayeval::reports {
namespace {

constexpr double pixels_per_inch = 110.0;  // of the PDF's size; its letters have the SVG's proportions

std::string script_of(const FigureFiles& figure, const std::string& svg, const std::string& pdf) {
  return fmt::format(
      "set encoding utf8\n"
      "set terminal svg size {},{} noenhanced background rgb 'white' font 'sans,13'\nset output {}\n{}\nunset output\n"
      "reset\nset terminal pdfcairo size {:.2f},{:.2f} noenhanced font 'sans,9'\nset output {}\n{}\nunset output\n",
      figure.width, figure.height, gnuplot_quoted(svg), figure.commands, figure.width / pixels_per_inch,
      figure.height / pixels_per_inch, gnuplot_quoted(pdf), figure.commands);
}

}  // namespace

std::string safe_name(const std::string& name) {
  std::string safe = name;
  for (char& c : safe) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  }
  return safe;
}

std::string gnuplot_quoted(const std::string& text) {
  std::string inner;
  for (const char c : text) inner += c == '\'' ? std::string("''") : std::string(1, c);  // gnuplot's way
  return "'" + inner + "'";
}

std::string draw_figure(const FigureFiles& figure, const std::filesystem::path& folder) {
  const std::string svg = figure.stem + ".svg", pdf = figure.stem + ".pdf";
  const std::array<std::string, 2> names = {svg, pdf};
  const std::filesystem::path script = folder / (figure.stem + ".gp");
  write_file_atomically(folder / (figure.stem + ".dat"), figure.data);
  write_file_atomically(script, script_of(figure, svg + ".partial", pdf + ".partial"));
  std::string complaint = run_gnuplot(script);
  std::error_code failure;
  // From now on the script is for people, who want the figure itself.
  if (complaint.empty()) write_file_atomically(script, script_of(figure, svg, pdf));
  for (const std::string& name : names) {
    if (complaint.empty()) {
      std::filesystem::rename(folder / (name + ".partial"), folder / name, failure);
      if (failure) complaint = fmt::format("gnuplot wrote no {}", name);
    }
    std::filesystem::remove(folder / (name + ".partial"), failure);
  }
  return complaint;
}

}  // namespace replayeval::reports
