// The kernels' rounding point, on whole tensors: what storing float32 values in a Storage gives, and what it counts.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/types.h"

namespace replayeval {

// values: float32 -> the same shape in the storage's dtype; kernels/storage_scalar.h defines each element.
at::Tensor stored(const at::Tensor& values, const Storage& storage);

// [3] int64 on the values' device: how many of these stores saturate, are subnormal, are not finite (StorageCounts).
at::Tensor odd_stores(const at::Tensor& values, const Storage& storage);

}  // namespace replayeval
