// A run's folder on disk.
//
//   identity.json   what the run is: its config with defaults, checkpoint and data hashes; decides resume or refuse
//   progress/       finished shards of work; removed when the run is complete
//   tokens/         per-token arrays, one .npy per arm and workload
//   results.json    written when a workload is complete; report.* are made from it
//
// One writer at a time: the folder is locked while a run works in it.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace replayeval {

class ResultFolderError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ResultFolder {
 public:
  // Creates the folder, or opens one that an earlier run with the same identity left. Throws ResultFolderError when it
  // cannot be written, holds another run's results (unless overwrite), holds files that are no run's, or is in use.
  // overwrite deletes only what a run wrote.
  static ResultFolder open(const std::filesystem::path& path, const nlohmann::json& identity, bool overwrite);

  ResultFolder(ResultFolder&& other) noexcept;
  ResultFolder& operator=(ResultFolder&&) = delete;
  ~ResultFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path results_file() const { return path_ / "results.json"; }
  std::filesystem::path tokens_folder() const { return path_ / "tokens"; }
  std::filesystem::path shard_folder(const std::string& workload) const { return path_ / "progress" / workload; }

  void remove_progress();

 private:
  ResultFolder(std::filesystem::path path, int lock);
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace replayeval
