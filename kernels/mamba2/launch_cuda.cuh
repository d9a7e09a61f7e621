// How Mamba-2's heads are laid out on the GPU, and the tile type for its state.
#pragma once

#include "kernels/launch_cuda.cuh"
#include "kernels/mamba2/mamba2.h"
#include "kernels/mamba2/scalars_cuda.cuh"
#include "kernels/raw_operands_cuda.cuh"
#include "kernels/tile_cuda.cuh"

namespace replayeval::mamba2 {

__host__ __device__ inline replayeval::cuda::HeadShape head_shape(const Shape& shape) {
  return {static_cast<int>(shape.num_heads), static_cast<int>(shape.num_groups), static_cast<int>(shape.head_dim),
          static_cast<int>(shape.state_size)};
}

}  // namespace replayeval::mamba2

namespace replayeval::mamba2::cuda {

using namespace replayeval::cuda;

// Whether x, B and C can be read four elements at a time.
inline bool reads_fours(const Inputs& in) {
  return lies_in_fours(in.x, in.x_stride, in.dtype) && lies_in_fours(in.B, in.B_stride, in.dtype) &&
         lies_in_fours(in.C, in.C_stride, in.dtype);
}

// Calls `launch` with the tile type for a state size and the state's dtype, as launch.template operator()<Tile,
// kState>().
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
  if (shape.state_size == Tile128<true>::kMaxStateSize) {
    with_dtype.template operator()<Tile128<true>>();
  } else if (shape.state_size == Tile64<true>::kMaxStateSize) {
    with_dtype.template operator()<Tile64<true>>();
  } else if (shape.state_size < Tile64<false>::kMaxStateSize) {
    with_dtype.template operator()<Tile64<false>>();
  } else if (shape.state_size < Tile128<false>::kMaxStateSize) {
    with_dtype.template operator()<Tile128<false>>();
  } else {
    with_dtype.template operator()<Tile256>();
  }
}

}  // namespace replayeval::mamba2::cuda
