// Attention of many sequences whose keys are read where they lie in their pools, one after another: FlashAttention-2's
// kernel for sequences of different lengths (Dao 2023), which makes no mask and reads no key that a query may not see.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/model/layers.h"

namespace replayeval {

// Whether attend_packed() can do it: several tokens of each row, on a GPU, in 16 bits, keys as wide as values, a
// multiple of 8 up to 256; no keys behind a row's own.
bool attends_packed(const at::Tensor& q, const KeyValueCache& cache, const PagedRows& pages, const RowPlaces& places);

// As attend(). A row's bits do not depend on the other rows: no split over keys, whatever their number.
at::Tensor attend_packed(const at::Tensor& q, const KeyValueCache& cache, const PagedRows& pages,
                         const RowPlaces& places, const AttentionSpan& span);

}  // namespace replayeval
