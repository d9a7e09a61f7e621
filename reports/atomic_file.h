// Files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace replayeval::reports {

// Writes a temporary file beside `file`, flushes it to the disk and renames it into place. On failure throws
// ResultsError naming the file and the system's reason, removes the temporary file, and leaves what stood there before.
// A device, pipe or socket is refused: the rename would put a file in the place of, say, /dev/null. A link is followed.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

}  // namespace replayeval::reports
