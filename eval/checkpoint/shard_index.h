// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/checkpoint/checkpoint.h"

namespace replayeval {

using ShardOfTensor = std::map<std::string, std::string>;  // tensor name -> file name inside the folder

// Throws CheckpointError, `file` first: broken JSON, no weight_map or an empty one, a shard outside the folder.
ShardOfTensor parse_shard_index(std::string_view text, const std::filesystem::path& file);

// All shards' tensors by name. Throws CheckpointError when two shards hold the same tensor.
std::map<std::string, TensorView> merge_shards(const std::vector<std::vector<TensorView>>& shards);

// Throws CheckpointError when a tensor is not where the index says, or is in a shard but not in the index.
void check_against_index(const std::map<std::string, TensorView>& tensors, const ShardOfTensor& shard_of,
                         const std::filesystem::path& index);

}  // namespace replayeval
