// What turns hidden states into logits, as a hash.
#pragma once

#include <string>

#include "eval/model/model.h"

namespace replayeval {

// SHA-256 (hex) of what the head makes of each unit vector: its matrix and whatever scales its products. The same for
// the same head on every device, in one compute dtype. Takes hidden_size * vocab_size multiply-adds per unit vector.
std::string head_sha256(const Model& model);

}  // namespace replayeval
