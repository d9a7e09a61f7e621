#include "reports/figure_files.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <fstream>
#include <sstream>

#include "reports/atomic_file.h"
#include "reports/gnuplot.h"
#include "reports/html/markup.h"

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

// What stands between two tags, anew; the first of them alone.
void replace_inner(std::string& text, const std::string& tag, const std::string& inner) {
  const std::string open = "<" + tag + ">", close = "</" + tag + ">";
  const std::size_t begin = text.find(open), end = text.find(close, begin);
  if (begin != std::string::npos && end != std::string::npos)
    text.replace(begin, end + close.size() - begin, html::text_element(tag, {{"id", tag}}, inner));
}

void name_svg_file(const std::filesystem::path& file, const FigureFiles& figure) {
  std::ostringstream svg;
  svg << std::ifstream(file, std::ios::binary).rdbuf();
  write_file_atomically(file, named_svg(svg.str(), figure));
}

}  // namespace

std::string named_svg(const std::string& svg, const FigureFiles& figure) {
  std::string named = svg;
  const std::size_t root = named.find("<svg");
  if (root == std::string::npos) return svg;
  named.insert(root + 4, " role=\"img\" aria-labelledby=\"title desc\"");
  replace_inner(named, "title", figure.title);
  replace_inner(named, "desc", figure.description);
  return named;
}

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
  if (complaint.empty() && std::filesystem::exists(folder / (svg + ".partial")))
    name_svg_file(folder / (svg + ".partial"), figure);
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
