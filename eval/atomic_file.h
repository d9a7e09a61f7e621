// Files that are either whole or absent: written beside their place, flushed to disk, renamed.
#pragma once

#include <filesystem>
#include <string_view>

namespace replayeval {

// Throws std::runtime_error naming the file and the system's reason; the temporary file is removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace replayeval
