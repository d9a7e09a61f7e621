// The causal convolution on the GPU: by vectors of channels where they are aligned and rows many enough, else channel
// by channel; the bits are the same.
#include "kernels/conv/any_size_cuda.cuh"
#include "kernels/conv/backends.h"
#include "kernels/conv/block_cuda.cuh"
#include "kernels/conv/step_cuda.cuh"

namespace replayeval::cuda {
namespace {

constexpr std::int64_t kFewRows = 4;  // of one token, for which a thread a channel is the faster

template <Dtype kDtype>
void launch_vectors(cudaStream_t stream, const ConvArguments& arguments) {
  if (arguments.block.tokens == 1) {
    launch_conv_step<kDtype>(stream, arguments);
  } else {
    launch_conv_block<kDtype>(stream, arguments);
  }
}

}  // namespace

void causal_conv(void* stream, const DecodeBlock& block, const Conv& conv) {
  const ConvArguments arguments{block, conv, 1, 1, 1};
  const auto on = static_cast<cudaStream_t>(stream);
  const bool few = block.tokens == 1 && block.batch <= kFewRows;
  if (few || !channels_aligned(conv)) return launch_conv_any_size(on, arguments);
  switch (conv.dtype) {
    case Dtype::float32:
      return launch_vectors<Dtype::float32>(on, arguments);
    case Dtype::bfloat16:
      return launch_vectors<Dtype::bfloat16>(on, arguments);
    case Dtype::float16:
      return launch_vectors<Dtype::float16>(on, arguments);
  }
}

}  // namespace replayeval::cuda
