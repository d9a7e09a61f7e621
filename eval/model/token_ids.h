// The door of every model's forward.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/model/row_slots.h"

namespace replayeval {

// Throws std::invalid_argument unless ids are [rows.rows(), T] or [arms, rows.rows(), T] int64 with T >= 1, inside the
// vocabulary (naming id, place and size; ids on a GPU are not looked at), and fit into what is left of a cache of
// `capacity` tokens a slot.
void check_token_ids(const at::Tensor& ids, std::int64_t vocab_size, const RowSlots& rows, std::int64_t arms,
                     std::int64_t capacity);

}  // namespace replayeval
