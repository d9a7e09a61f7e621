// A Hugging Face checkpoint folder: config.json and one or many memory-mapped safetensors shards.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace replayeval {

// One line that names the file, the place in it and what was expected.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A tensor inside a mapped shard; valid as long as the Checkpoint lives.
struct TensorView {
  std::string name;
  std::string dtype;  // safetensors spelling: F32, BF16, F16, ...
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // row-major, little-endian
  std::filesystem::path file;
};

class Checkpoint {
 public:
  // Maps every shard and checks headers: sizes, overlaps, bounds, the index against the shards. Throws CheckpointError.
  static Checkpoint open(const std::filesystem::path& folder);
  // config.json alone, of a folder or by its own path: a model's shape without its weights. Throws CheckpointError.
  static Checkpoint open_config(const std::filesystem::path& folder_or_config);

  // A config that was parsed already; `file` is its name in messages. Throws CheckpointError if it is no object.
  static Checkpoint of_config(nlohmann::json config, const std::filesystem::path& file);

  const std::filesystem::path& folder() const;
  const std::filesystem::path& config_file() const;
  bool has_weights() const;
  // Whether keys of config.json that no one knows are passed over, for whoever lists them, instead of refused.
  void pass_over_unknown_keys() { passes_over_unknown_keys_ = true; }
  bool passes_over_unknown_keys() const { return passes_over_unknown_keys_; }
  const nlohmann::json& config() const;  // config.json; Infinity in both spellings is +inf
  const std::map<std::string, TensorView>& tensors() const;
  const TensorView& tensor(const std::string& name) const;  // throws CheckpointError if absent
  // Of the bytes of config.json and all shards in name order, one behind the other, as results name the checkpoint:
  // `cat config.json *.safetensors | sha256sum` prints the same. Reads all of them, once.
  std::string sha256() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
  bool passes_over_unknown_keys_ = false;
};

}  // namespace replayeval
