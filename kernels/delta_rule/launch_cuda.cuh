// How the delta rule's value heads are laid out on the GPU, and the tile type for their state.
#pragma once

#include "kernels/delta_rule/delta_rule.h"
#include "kernels/launch_cuda.cuh"
#include "kernels/tile_cuda.cuh"

namespace replayeval::delta_rule {

__host__ __device__ inline replayeval::cuda::HeadShape head_shape(const Shape& shape) {
  return {static_cast<int>(shape.num_value_heads), static_cast<int>(shape.num_key_heads),
          static_cast<int>(shape.value_dim), static_cast<int>(shape.key_dim)};
}

}  // namespace replayeval::delta_rule

namespace replayeval::delta_rule::cuda {

using namespace replayeval::cuda;

// Calls `launch` with the tile type for a key dim and the state's dtype, as launch.template operator()<Tile, kState>().
template <class Launch>
void with_tile(const Shape& shape, Dtype state, const Launch& launch) {
  const auto with_dtype = [&]<class T>() {
    if (state == Dtype::float32) {
      launch.template operator()<T, Dtype::float32>();
    } else if (state == Dtype::bfloat16) {
      launch.template operator()<T, Dtype::bfloat16>();
    } else {
      launch.template operator()<T, Dtype::float16>();
    }
  };
  if (shape.key_dim == Tile128<true>::kMaxStateSize) {
    with_dtype.template operator()<Tile128<true>>();
  } else if (shape.key_dim < Tile128<false>::kMaxStateSize) {
    with_dtype.template operator()<Tile128<false>>();
  } else {
    with_dtype.template operator()<Tile256>();
  }
}

}  // namespace replayeval::delta_rule::cuda
