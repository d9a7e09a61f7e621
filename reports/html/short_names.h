// Names that must fit a drawing and still tell what they name apart.
#pragma once

#include <string>
#include <vector>

namespace replayeval::reports::html {

// The names as they are where all fit `room` (in the units of svg::width_of). Otherwise without the words that all of
// them begin with, and, where that is too long, cut in the middle, with "…" for what is gone; equal names stay equal,
// and different ones different.
std::vector<std::string> short_names(const std::vector<std::string>& names, double room);

}  // namespace replayeval::reports::html
