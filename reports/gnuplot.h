// Running gnuplot, if it is there.
#pragma once

#include <filesystem>
#include <string>

namespace replayeval::reports {

// Runs the script file in its own folder and waits. Returns "" on success, otherwise what went wrong in one line (not
// installed, or gnuplot's first complaint).
std::string run_gnuplot(const std::filesystem::path& script);

}  // namespace replayeval::reports
