#include "eval/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "datasets/sha256.h"
#include "eval/checkpoint/json_text.h"
#include "eval/checkpoint/mapped_file.h"
#include "eval/checkpoint/safetensors.h"
#include "eval/checkpoint/shard_index.h"

namespace replayeval {

namespace fs = std::filesystem;
using nlohmann::json;

struct Checkpoint::Impl {
  fs::path folder, config_file;
  json config;
  std::vector<std::pair<fs::path, MappedFile>> shards;  // in name order
  std::map<std::string, TensorView> tensors;
  mutable std::once_flag hashed;
  mutable std::string sha256;

  Impl(json parsed, const fs::path& path_of_config)
      : folder(path_of_config.parent_path()), config_file(path_of_config), config(std::move(parsed)) {
    if (!config.is_object())
      throw CheckpointError(config_file.string() + ": expected a JSON object, found " + show(config));
  }
};

namespace {

constexpr const char* config_name = "config.json";
constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

// The shards' names and, where there is an index, what it says of them.
std::pair<std::set<std::string>, ShardOfTensor> find_shards(const fs::path& folder) {
  if (fs::exists(folder / single_name)) return {{single_name}, {}};
  if (!fs::exists(folder / index_name))
    throw CheckpointError(folder.string() + ": no weights; expected " + single_name + " or " + index_name);
  ShardOfTensor shard_of = parse_shard_index(read_text(folder / index_name), folder / index_name);
  std::set<std::string> names;
  for (const auto& [tensor, shard] : shard_of) {
    names.insert(shard);
    if (!fs::exists(folder / shard))
      throw CheckpointError(
          fmt::format("{}: weight_map: tensor \"{}\" is in shard {}, which does not exist; expected {}",
                      (folder / index_name).string(), tensor, shard, (folder / shard).string()));
  }
  return {std::move(names), std::move(shard_of)};
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw CheckpointError(folder.string() + ": not a folder; expected a Hugging Face checkpoint with config.json");
  auto impl = std::make_shared<Impl>(read_json_file(folder / config_name), folder / config_name);
  const auto [names, shard_of] = find_shards(folder);
  std::vector<std::vector<TensorView>> tensors;
  for (const std::string& name : names) {
    const fs::path file = folder / name;
    const MappedFile& mapped = impl->shards.emplace_back(file, MappedFile(file)).second;
    tensors.push_back(read_safetensors(mapped.bytes(), file));
  }
  impl->tensors = merge_shards(tensors);
  if (impl->tensors.empty())
    throw CheckpointError((folder / *names.begin()).string() + ": holds no tensors; expected a model's weights");
  if (!shard_of.empty()) check_against_index(impl->tensors, shard_of, folder / index_name);

  Checkpoint checkpoint;
  checkpoint.impl_ = std::move(impl);
  return checkpoint;
}

Checkpoint Checkpoint::open_config(const fs::path& folder_or_config) {
  if (!fs::exists(folder_or_config))
    throw CheckpointError(folder_or_config.string() + ": not there; expected a config.json or a folder that holds one");
  const fs::path file = fs::is_directory(folder_or_config) ? folder_or_config / config_name : folder_or_config;
  return of_config(read_json_file(file), file);
}

Checkpoint Checkpoint::of_config(json config, const fs::path& file) {
  Checkpoint checkpoint;
  checkpoint.impl_ = std::make_shared<Impl>(std::move(config), file);
  return checkpoint;
}

const fs::path& Checkpoint::folder() const { return impl_->folder; }
const fs::path& Checkpoint::config_file() const { return impl_->config_file; }
bool Checkpoint::has_weights() const { return !impl_->shards.empty(); }
const json& Checkpoint::config() const { return impl_->config; }
const std::map<std::string, TensorView>& Checkpoint::tensors() const { return impl_->tensors; }

const TensorView& Checkpoint::tensor(const std::string& name) const {
  const auto found = impl_->tensors.find(name);
  if (found == impl_->tensors.end())
    throw CheckpointError(impl_->folder.string() + ": tensor \"" + name + "\" is missing from the weights");
  return found->second;
}

std::string Checkpoint::sha256() const {
  static constexpr std::size_t portion = std::size_t{64} << 20;
  const auto hash = [this] {
    datasets::Sha256 digest;
    digest.update(MappedFile(impl_->config_file).bytes());
    for (const auto& [file, mapped] : impl_->shards)
      for (std::span<const std::byte> rest = mapped.bytes(); !rest.empty();) {
        const auto part = rest.first(std::min(portion, rest.size()));
        rest = rest.subspan(part.size());
        will_need(rest.first(std::min(portion, rest.size())));
        digest.update(part);
        release(part);
      }
    impl_->sha256 = digest.hex();
  };
  std::call_once(impl_->hashed, hash);
  return impl_->sha256;
}

}  // namespace replayeval
