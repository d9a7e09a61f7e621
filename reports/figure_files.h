// One figure as files: the data, the gnuplot script that people can run again, and what it draws (SVG, PDF).
#pragma once

#include <filesystem>
#include <string>

namespace replayeval::reports {

struct FigureFiles {
  std::string stem;  // of the files
  std::string title;
  std::string data;               // of STEM.dat; empty: there is nothing to draw
  std::string commands;           // gnuplot's, behind terminal and output; they read STEM.dat
  int width = 860, height = 420;  // pixels of the SVG
};

// A name that is safe as a file name and in a link.
std::string safe_name(const std::string& name);
std::string gnuplot_quoted(const std::string& text);

// Writes STEM.dat, STEM.gp, STEM.svg and STEM.pdf into `folder`. "" or why there is no figure. Throws ResultsError
// where the folder is not writable.
std::string draw_figure(const FigureFiles& figure, const std::filesystem::path& folder);

}  // namespace replayeval::reports
