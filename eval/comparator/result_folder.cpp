#include "eval/comparator/result_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "reports/atomic_file.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;

constexpr const char* identity_name = "identity.json";
constexpr const char* lock_name = ".lock";
// All that a run may have written; --overwrite deletes these and nothing else.
constexpr const char* own_names[] = {"progress",     "tokens",    "samples",    "figures",
                                     "results.json", "report.md", identity_name};

void create(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw ResultFolderError(path.string() + ": the result folder cannot be created: " + error.message());
}

int lock(const fs::path& path) {
  const fs::path file = path / lock_name;
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    throw ResultFolderError(path.string() + ": the result folder cannot be written: " + std::strerror(errno));
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor);
    throw ResultFolderError(path.string() + ": another run is working in this result folder");
  }
  return descriptor;
}

std::optional<nlohmann::json> read_identity(const fs::path& path) {
  const fs::path name = path / identity_name;
  const auto damaged = [&](const char* what) {
    return ResultFolderError(name.string() + ": " + what + "; use --overwrite to start this result folder anew");
  };
  if (fs::is_directory(name)) throw damaged("is a folder, expected a JSON file");
  std::ifstream file(name);
  if (!file) return std::nullopt;
  try {
    return nlohmann::json::parse(file);
  } catch (const nlohmann::json::parse_error&) {
    throw damaged("not valid JSON");
  }
}

// The first place where two identities differ, as a JSON pointer with both values.
std::string first_difference(const nlohmann::json& found, const nlohmann::json& wanted) {
  const nlohmann::json patch = nlohmann::json::diff(found, wanted);
  if (patch.empty()) return "nothing";
  const std::string place = patch.front().at("path");
  const auto at = [&](const nlohmann::json& document) {
    const nlohmann::json::json_pointer pointer(place);
    return document.contains(pointer) ? document.at(pointer).dump() : std::string("absent");
  };
  return place + " is " + at(found) + " there and " + at(wanted) + " here";
}

// A run that failed before its first shard leaves nothing worth protecting.
bool holds_work(const fs::path& path) { return fs::exists(path / "results.json") || fs::exists(path / "progress"); }

void refuse_foreign(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().filename() != lock_name) {
      throw ResultFolderError(path.string() + ": holds files that no run wrote; choose an empty or new folder");
    }
  }
}

void remove_own_files(const fs::path& path) {
  for (const char* name : own_names) fs::remove_all(path / name);
}

}  // namespace

ResultFolder ResultFolder::open(const fs::path& path, const nlohmann::json& identity, bool overwrite) {
  if (fs::exists(path) && !fs::is_directory(path)) {
    throw ResultFolderError(path.string() + ": is a file; a result folder was expected");
  }
  create(path);
  // A folder of someone else's is left as it is, without a lock of ours. Where there is a lock, a run may be at work.
  if (!fs::exists(path / lock_name) && !fs::exists(path / identity_name)) refuse_foreign(path);
  ResultFolder folder(path, lock(path));
  try {
    if (overwrite) remove_own_files(path);
    const std::optional<nlohmann::json> found = read_identity(path);
    if (found && *found != identity && holds_work(path)) {
      throw ResultFolderError(path.string() + ": holds another run (" + first_difference(*found, identity) +
                              "); choose another --output or use --overwrite");
    }
    if (!found) refuse_foreign(path);
    if (!found || *found != identity) reports::write_file_atomically(path / identity_name, identity.dump(2) + "\n");
    create(folder.tokens_folder());
  } catch (const fs::filesystem_error& error) {
    throw ResultFolderError(path.string() + ": the result folder cannot be written: " + error.code().message());
  }
  return folder;
}

ResultFolder::ResultFolder(fs::path path, int lock) : path_(std::move(path)), lock_(lock) {}

ResultFolder::ResultFolder(ResultFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

ResultFolder::~ResultFolder() {
  if (lock_ >= 0) ::close(lock_);  // the lock file stays: removing it would race with a run that waits to open it
}

void ResultFolder::remove_progress() { fs::remove_all(path_ / "progress"); }

}  // namespace replayeval
