// Files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace replayeval::reports {

// Writes a temporary file beside `file`, flushes it to the disk and renames it into place. On failure throws
// ResultsError naming the file and the system's reason, removes the temporary file, and leaves what stood there before.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

}  // namespace replayeval::reports
