// A run's folder on disk.
//
//   identity.json   what the run is: its config with defaults, checkpoint and data hashes; decides resume or refuse.
//                   And the program's revision, which unfinished work must not mix
//   progress/       finished shards of work; removed when the run is complete
//   tokens/         per-token arrays and generated ids, one .npy per arm and workload
//   baseline/       a portable baseline, if one was asked for (baseline_format.h)
//   samples/        documents with answers and metrics, prompts with their texts: one JSONL file per arm and workload
//   results.json    written when a workload is complete; report.* are made from it
//
// One writer at a time: the folder is locked while a run works in it. A run that ends before it has any work to show
// leaves the folder as it found it.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
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
  // Creates the folder, or opens one that an earlier run with the same identity left. `revision`: of the program, as in
  // results.json. Throws ResultFolderError when it cannot be written, holds another run's results or unfinished work of
  // another revision (unless overwrite), holds files that are no run's, or is in use. overwrite deletes only what a run
  // wrote.
  static ResultFolder open(const std::filesystem::path& path, const nlohmann::json& identity,
                           const std::string& revision, bool overwrite);

  // Whether a run has claimed the folder.
  static bool is_one(const std::filesystem::path& path);

  ResultFolder(ResultFolder&& other) noexcept;
  ResultFolder& operator=(ResultFolder&&) = delete;
  ~ResultFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path results_file() const { return path_ / "results.json"; }
  std::filesystem::path tokens_folder() const { return path_ / "tokens"; }
  std::filesystem::path baseline_folder() const { return path_ / "baseline"; }
  std::filesystem::path samples_folder() const { return path_ / "samples"; }
  std::filesystem::path shard_folder(const std::string& workload) const { return path_ / "progress" / workload; }

  void remove_progress();
  std::int64_t part_count(const std::string& workload) const;  // shards of its work that are finished

 private:
  explicit ResultFolder(std::filesystem::path path);
  void claim(const nlohmann::json& identity, const std::string& revision, bool overwrite);
  void remove_unless_it_holds_work() noexcept;

  std::filesystem::path path_;
  int lock_ = -1;
  bool created_ = false;  // by this run
  bool claimed_ = false;  // this run's to write, and to tidy up
};

}  // namespace replayeval
