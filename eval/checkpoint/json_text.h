// JSON as Hugging Face folders hold it: Python's bare Infinity and NaN, and transformers' {"__float__": "Infinity"}.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace replayeval {

// Parses `text`; infinities and NaN in either spelling become floating-point values. `place` names where the text
// stands inside `file` ("" for the whole file). Throws CheckpointError on broken JSON, on a key that an object
// holds twice, and on values nested deeper than any such file needs.
nlohmann::json parse_json_text(std::string_view text, const std::filesystem::path& file, std::string_view place = "");

// The file's bytes. Throws CheckpointError when it cannot be opened.
std::string read_text(const std::filesystem::path& file);

// Reads and parses a file. Throws CheckpointError when it is missing, too.
nlohmann::json read_json_file(const std::filesystem::path& file);

// Short, quoted and on one line: how a value that is not what was expected is shown in a message.
std::string show(const nlohmann::json& value);

}  // namespace replayeval
