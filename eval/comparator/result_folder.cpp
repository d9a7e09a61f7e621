#include "eval/comparator/result_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
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
constexpr const char* revision_key = "revision";  // in identity.json, beside the identity's own
// All that a run may have written; --overwrite deletes these and nothing else.
constexpr const char* own_names[] = {"progress", "tokens",       "samples",   "figures",     "baseline",
                                     "latex",    "results.json", "report.md", "report.html", identity_name};

// Whether it was not there before.
bool create(const fs::path& path) {
  std::error_code error;
  const bool created = fs::create_directories(path, error);
  if (error) throw ResultFolderError(path.string() + ": the result folder cannot be created: " + error.message());
  return created;
}

bool is_the_file(int descriptor, const fs::path& file) {
  struct stat opened {};
  struct stat there {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(file.c_str(), &there) == 0 && opened.st_ino == there.st_ino &&
         opened.st_dev == there.st_dev;
}

// A run that leaves nothing removes its lock file while it holds the lock. Who opened the file just before has locked a
// file without a name, which keeps nobody out, and tries again.
int lock(const fs::path& path) {
  const fs::path file = path / lock_name;
  while (true) {
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) {
      throw ResultFolderError(path.string() + ": the result folder cannot be written: " + std::strerror(errno));
    }
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor);
      throw ResultFolderError(path.string() + ": another run is working in this result folder");
    }
    if (is_the_file(descriptor, file)) return descriptor;
    ::close(descriptor);
  }
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

std::string take_revision(nlohmann::json& identity) {
  const auto at = identity.find(revision_key);
  if (at == identity.end() || !at->is_string()) return "an unknown revision";
  std::string revision = *at;
  identity.erase(at);
  return revision;
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

// Whole ones below a folder, which need not be there; a shard's .json is written last.
std::int64_t count_shards(const fs::path& path) {
  std::int64_t count = 0;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(path, ignored))
    if (entry.path().extension() == ".json") ++count;
  return count;
}

bool holds_shards(const fs::path& path) { return count_shards(path / "progress") > 0; }

// A run that failed before its first shard leaves nothing worth protecting.
bool holds_work(const fs::path& path) { return fs::exists(path / "results.json") || holds_shards(path); }

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

bool ResultFolder::is_one(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / identity_name, ignored);
}

ResultFolder ResultFolder::open(const fs::path& path, const nlohmann::json& identity, const std::string& revision,
                                bool overwrite) {
  if (fs::exists(path) && !fs::is_directory(path)) {
    throw ResultFolderError(path.string() + ": is a file; a result folder was expected");
  }
  try {
    ResultFolder folder(path);
    folder.claim(identity, revision, overwrite);
    return folder;
  } catch (const fs::filesystem_error& error) {
    throw ResultFolderError(path.string() + ": the result folder cannot be written: " + error.code().message());
  }
}

ResultFolder::ResultFolder(fs::path path) : path_(std::move(path)), created_(create(path_)) {
  // A folder of someone else's is left as it is, without a lock of ours. Where there is a lock, a run may be at work.
  if (!fs::exists(path_ / lock_name) && !fs::exists(path_ / identity_name)) refuse_foreign(path_);
  lock_ = lock(path_);
}

// Makes the locked folder this run's, or refuses.
void ResultFolder::claim(const nlohmann::json& identity, const std::string& revision, bool overwrite) {
  if (!fs::exists(path_ / identity_name)) refuse_foreign(path_);
  if (overwrite) remove_own_files(path_);
  std::optional<nlohmann::json> found = read_identity(path_);
  if (found && holds_work(path_)) {
    const std::string found_revision = take_revision(*found);
    if (*found != identity) {
      throw ResultFolderError(path_.string() + ": holds another run (" + first_difference(*found, identity) +
                              "); choose another --output, use --overwrite or remove " + path_.string());
    }
    if (holds_shards(path_) && found_revision != revision) {
      throw ResultFolderError(
          path_.string() + ": holds unfinished work of " + found_revision + ", and this program is " + revision +
          "; go on with that one or, to compute all again, use --overwrite or remove " + path_.string());
    }
  }
  claimed_ = true;
  if (!holds_work(path_)) {
    nlohmann::json stored = identity;
    stored[revision_key] = revision;
    reports::write_file_atomically(path_ / identity_name, stored.dump(2) + "\n");
  }
  create(tokens_folder());
}

ResultFolder::ResultFolder(ResultFolder&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      created_(other.created_),
      claimed_(other.claimed_) {}

ResultFolder::~ResultFolder() {
  if (lock_ < 0) return;
  if (claimed_) remove_unless_it_holds_work();
  ::close(lock_);
}

// Errors are passed over: the run has failed already, and says why.
void ResultFolder::remove_unless_it_holds_work() noexcept {
  try {
    if (holds_work(path_)) return;
    remove_own_files(path_);
    fs::remove(path_ / lock_name);
    if (created_ && fs::is_empty(path_)) fs::remove(path_);
  } catch (const std::exception&) {
  }
}

std::int64_t ResultFolder::part_count(const std::string& workload) const {
  return count_shards(shard_folder(workload));
}

void ResultFolder::remove_progress() { fs::remove_all(path_ / "progress"); }

}  // namespace replayeval
