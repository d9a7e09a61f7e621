// Which layer does what: the lists of layer kinds in config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/model/architecture.h"
#include "eval/model/config_reader.h"

namespace replayeval {

// The kinds under `key`, a list of names: those of transformers 5 (linear_attention, full_attention) or the older ones
// (mamba, mamba2, attention), and mlp and moe; only kinds in `allowed`. Throws CheckpointError naming the layer.
std::vector<LayerKind> read_layer_names(ConfigReader& reader, const std::string& key,
                                        const std::vector<LayerKind>& allowed);

// num_hidden_layers layers of one kind, or `otherwise` if the key is missing. Throws CheckpointError on more than
// 10,000.
std::vector<LayerKind> read_layer_count(ConfigReader& reader, LayerKind kind,
                                        std::optional<std::int64_t> otherwise = std::nullopt);

// num_hidden_layers, if it is there, must be the number of `layers`, which stand under `key`. Throws CheckpointError
// naming both numbers.
void check_layer_count(ConfigReader& reader, const std::vector<LayerKind>& layers, const std::string& key);

// Of models whose layers are a mixer each, Mamba-2 or attention: layer_types or layers_block_type, or num_hidden_layers
// layers of kind `otherwise`. Throws CheckpointError where the keys disagree.
std::vector<LayerKind> read_mixer_list(ConfigReader& reader, LayerKind otherwise);

}  // namespace replayeval
