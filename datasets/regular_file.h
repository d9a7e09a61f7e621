// What can be read again: pipes and devices cannot, and some of them never end.
#pragma once

#include <filesystem>
#include <string_view>

namespace replayeval::datasets {

// Throws DataError "FILE: is a pipe; expected EXPECTED" where there is something else than a file (or a link to one)
// under the name. Whether there is anything is for the reader to see.
void require_regular_file(const std::filesystem::path& file, std::string_view expected = "a regular file");

}  // namespace replayeval::datasets
