#include "eval/checkpoint/shard_index.h"

#include <fmt/format.h>

#include "eval/checkpoint/json_text.h"

namespace replayeval {

namespace fs = std::filesystem;
using nlohmann::json;

ShardOfTensor parse_shard_index(std::string_view text, const fs::path& file) {
  const json index = parse_json_text(text, file);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object())
    throw CheckpointError(file.string() + ": weight_map is missing; expected an object of tensor to shard names");
  if (map->empty()) throw CheckpointError(file.string() + ": weight_map is empty; expected at least one tensor");
  ShardOfTensor shard_of;
  for (const auto& [tensor, shard] : map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    if (name.empty() || fs::path(name).filename() != fs::path(name) || name == ".." ||
        name.find('\0') != std::string::npos)
      throw CheckpointError(file.string() + ": weight_map: tensor \"" + tensor + "\" has shard " + show(shard) +
                            "; expected the name of a file in this folder");
    shard_of.emplace(tensor, name);
  }
  return shard_of;
}

std::map<std::string, TensorView> merge_shards(const std::vector<std::vector<TensorView>>& shards) {
  std::map<std::string, TensorView> tensors;
  for (const std::vector<TensorView>& shard : shards)
    for (const TensorView& view : shard) {
      const auto [place, added] = tensors.emplace(view.name, view);
      if (!added)
        throw CheckpointError(view.file.string() + ": tensor \"" + view.name + "\" is also in " +
                              place->second.file.filename().string() + "; expected it in one shard");
    }
  return tensors;
}

void check_against_index(const std::map<std::string, TensorView>& tensors, const ShardOfTensor& shard_of,
                         const fs::path& index) {
  for (const auto& [name, shard] : shard_of) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.file.filename() != shard)
      throw CheckpointError(
          fmt::format("{}: weight_map: tensor \"{}\" is not in {}{}; expected it there", index.string(), name, shard,
                      found == tensors.end() ? "" : " but in " + found->second.file.filename().string()));
  }
  for (const auto& [name, view] : tensors)
    if (!shard_of.contains(name))
      throw CheckpointError(view.file.string() + ": tensor \"" + name + "\" is not listed in " +
                            index.filename().string() + "; expected every tensor of a shard there");
}

}  // namespace replayeval
