// results.json on the disk.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "reports/atomic_file.h"
#include "reports/results_io.h"

namespace replayeval::reports {
namespace {

// What the JSON library says, without its own "[json.exception...] " in front.
std::string complaint(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return text.starts_with("[json.exception") && end != std::string::npos ? text.substr(end + 2) : text;
}

std::string read_file(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(file, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))  // some devices never end
    throw ResultsError(fmt::format("{}: is a {}; expected a JSON file", file.string(),
                                   std::filesystem::is_directory(there) ? "folder" : "device, pipe or socket"));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.c_str(), "rb"), &std::fclose);
  if (!stream) throw ResultsError(file.string() + ": cannot be opened: " + std::strerror(errno));
  std::string text;
  char buffer[65536];
  while (const std::size_t count = std::fread(buffer, 1, sizeof(buffer), stream.get())) text.append(buffer, count);
  if (std::ferror(stream.get()) != 0) throw ResultsError(file.string() + ": cannot be read: " + std::strerror(errno));
  return text;
}

}  // namespace

void save_results(const Results& results, const std::filesystem::path& file) {
  const nlohmann::json json = to_json(results);  // checks: nothing is written if it throws
  write_file_atomically(file, json.dump(1) + "\n");
}

Results load_results(const std::filesystem::path& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  const std::filesystem::path file = is_folder ? path / "results.json" : path;
  if (!std::filesystem::exists(file)) {
    throw ResultsError(is_folder ? path.string() + ": holds no results.json; expected a result folder"
                                 : path.string() + ": no such file; expected a results.json or a result folder");
  }
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(read_file(file));
  } catch (const nlohmann::json::exception& error) {
    throw ResultsError(fmt::format("{}: is not JSON: {}", file.string(), complaint(error)));
  }
  return results_from_json(json, file.string());
}

}  // namespace replayeval::reports
