#include "eval/executors/stored_tensor.h"

#include <ATen/ATen.h>

#include "eval/executors/device.h"
#include "kernels/storage_scalar.h"

namespace replayeval {

at::Tensor stored(const at::Tensor& values, const Storage& storage) {
  const double limit = storage::max_finite(storage.dtype);
  const bool clamped = storage.overflow == Overflow::saturate && storage.dtype != Dtype::float32;
  return (clamped ? values.clamp(-limit, limit) : values).to(scalar_type(storage.dtype));
}

at::Tensor odd_stores(const at::Tensor& values, const Storage& storage) {
  const at::Tensor finite = at::isfinite(values);
  const at::Tensor beyond = values.abs().gt(static_cast<double>(storage::max_finite(storage.dtype)));
  const at::Tensor kept = stored(values, storage).to(at::kFloat).abs();
  const at::Tensor tiny = kept.gt(0.0).logical_and(kept.lt(static_cast<double>(storage::min_normal(storage.dtype))));
  return at::stack({beyond.logical_and(finite).sum(), tiny.sum(), finite.logical_not().sum()});
}

}  // namespace replayeval
