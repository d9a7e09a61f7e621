#include "eval/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "datasets/sha256.h"
#include "eval/checkpoint/json_text.h"
#include "eval/checkpoint/mapped_file.h"
#include "eval/checkpoint/safetensors.h"

namespace replayeval {

namespace fs = std::filesystem;
using nlohmann::json;

struct Checkpoint::Impl {
  fs::path folder;
  json config;
  std::vector<std::pair<fs::path, MappedFile>> shards;  // in name order
  std::map<std::string, TensorView> tensors;
};

namespace {

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

using WeightMap = std::map<std::string, std::string>;  // tensor -> shard

WeightMap read_index(const fs::path& file) {
  const json index = read_json_file(file);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object())
    throw CheckpointError(file.string() + ": weight_map is missing; expected an object of tensor to shard names");
  if (map->empty()) throw CheckpointError(file.string() + ": weight_map is empty; expected at least one tensor");
  WeightMap shard_of;
  for (const auto& [tensor, shard] : map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    if (name.empty() || fs::path(name).filename() != fs::path(name) || name == "..")
      throw CheckpointError(file.string() + ": weight_map: tensor \"" + tensor + "\" has shard " + show(shard) +
                            "; expected the name of a file in this folder");
    shard_of.emplace(tensor, name);
  }
  return shard_of;
}

// The shards' names and, where there is an index, what it says of them.
std::pair<std::set<std::string>, WeightMap> find_shards(const fs::path& folder) {
  if (fs::exists(folder / single_name)) return {{single_name}, {}};
  if (!fs::exists(folder / index_name))
    throw CheckpointError(folder.string() + ": no weights; expected " + single_name + " or " + index_name);
  WeightMap shard_of = read_index(folder / index_name);
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

void add_tensor(std::map<std::string, TensorView>& tensors, TensorView view) {
  const auto [place, added] = tensors.emplace(view.name, view);
  if (!added)
    throw CheckpointError(view.file.string() + ": tensor \"" + view.name + "\" is also in " +
                          place->second.file.filename().string() + "; expected it in one shard");
}

void check_against_index(const std::map<std::string, TensorView>& tensors, const WeightMap& shard_of,
                         const fs::path& folder) {
  const std::string index = (folder / index_name).string();
  for (const auto& [name, shard] : shard_of) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.file.filename() != shard)
      throw CheckpointError(
          fmt::format("{}: weight_map: tensor \"{}\" is not in {}{}; expected it there", index, name, shard,
                      found == tensors.end() ? "" : " but in " + found->second.file.filename().string()));
  }
  for (const auto& [name, view] : tensors)
    if (!shard_of.contains(name))
      throw CheckpointError(view.file.string() + ": tensor \"" + name + "\" is not listed in " + index_name +
                            "; expected every tensor of a shard there");
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw CheckpointError(folder.string() + ": not a folder; expected a Hugging Face checkpoint with config.json");
  auto impl = std::make_shared<Impl>();
  impl->folder = folder;
  impl->config = read_json_file(folder / "config.json");
  if (!impl->config.is_object())
    throw CheckpointError((folder / "config.json").string() + ": expected a JSON object, found " + show(impl->config));

  const auto [names, shard_of] = find_shards(folder);
  for (const std::string& name : names) {
    const fs::path file = folder / name;
    const MappedFile& mapped = impl->shards.emplace_back(file, MappedFile(file)).second;
    for (TensorView& view : read_safetensors(mapped, file)) add_tensor(impl->tensors, std::move(view));
  }
  if (impl->tensors.empty())
    throw CheckpointError((folder / *names.begin()).string() + ": holds no tensors; expected a model's weights");
  if (!shard_of.empty()) check_against_index(impl->tensors, shard_of, folder);

  Checkpoint checkpoint;
  checkpoint.impl_ = std::move(impl);
  return checkpoint;
}

const fs::path& Checkpoint::folder() const { return impl_->folder; }
const json& Checkpoint::config() const { return impl_->config; }
const std::map<std::string, TensorView>& Checkpoint::tensors() const { return impl_->tensors; }

const TensorView& Checkpoint::tensor(const std::string& name) const {
  const auto found = impl_->tensors.find(name);
  if (found == impl_->tensors.end())
    throw CheckpointError(impl_->folder.string() + ": tensor \"" + name + "\" is missing from the weights");
  return found->second;
}

std::string Checkpoint::sha256() const {
  datasets::Sha256 digest;
  digest.update(MappedFile(impl_->folder / "config.json").bytes());
  for (const auto& [file, mapped] : impl_->shards) digest.update(mapped.bytes());
  return digest.hex();
}

}  // namespace replayeval
