// One figure as files: the data, the gnuplot script that people can run again, and what it draws (SVG, PDF).
#pragma once

#include <filesystem>
#include <string>

namespace replayeval::reports {

struct FigureFiles {
  std::string stem;               // of the files
  std::string title;              // of what is shown: stands in the SVG, too, for those who cannot see it
  std::string description;        // what there is to see, in a sentence or two: in the SVG alone
  std::string data;               // of STEM.dat; empty: there is nothing to draw
  std::string commands;           // gnuplot's, behind terminal and output; they read STEM.dat
  int width = 860, height = 420;  // pixels of the SVG
};

// A name that is safe as a file name and in a link.
std::string safe_name(const std::string& name);
std::string gnuplot_quoted(const std::string& text);

// gnuplot's SVG with the figure's own title and description in the place of gnuplot's, and as an image with a name.
// Text without gnuplot's head comes back as it is.
std::string named_svg(const std::string& svg, const FigureFiles& figure);

// Writes STEM.dat, STEM.gp, STEM.svg and STEM.pdf into `folder`. "" or why there is no figure. Throws ResultsError
// where the folder is not writable.
std::string draw_figure(const FigureFiles& figure, const std::filesystem::path& folder);

}  // namespace replayeval::reports
