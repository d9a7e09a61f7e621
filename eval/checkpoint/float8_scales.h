// The scales of float8 weights, as published folders spell them. The stored weight times its scale is the weight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/checkpoint/checkpoint.h"

namespace replayeval {

// The scale of tensor X: X_scale_inv (a multiplier all the same) or X_scale; nullptr if neither is there.
const TensorView* find_scale(const Checkpoint& checkpoint, const std::string& tensor);

// A tensor that only float8 activations or key-value caches would need: input_scale, k_scale, v_scale. Activations are
// not rounded to float8 here, so that these do nothing.
bool is_activation_scale(const std::string& tensor);
std::vector<std::string> activation_scales(const Checkpoint& checkpoint);  // the folder's, sorted

// How a scale lies over a weight [..., out, in]; leading sizes are the weight's in every case.
enum class ScaleLayout : std::uint8_t {
  tensor,   // one for all: a single element
  matrix,   // one for each matrix: [..., 1, 1], [..., 1] or [...]
  channel,  // one for each row: [..., out, 1] or [..., out]
  block     // one for each block: [..., ceil(out / rows), ceil(in / columns)]
};

struct ScaleForm {
  ScaleLayout layout = ScaleLayout::tensor;
  std::int64_t rows = 128, columns = 128;  // of a block
};

// From both shapes; a block has quantization_config.weight_block_size of config.json, or 128 x 128. Throws
// CheckpointError naming file, tensor and the shapes that would do.
ScaleForm scale_form(const Checkpoint& checkpoint, const TensorView& weight, const TensorView& scale);

}  // namespace replayeval
