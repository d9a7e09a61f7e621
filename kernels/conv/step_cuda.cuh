// One token a sequence: a warp has 32 vectors of channels and takes several rows of the batch, the next row's inputs on
// their way while it computes. The state goes through the warp's shared memory, so that all accesses to global memory
// are whole lines.
#pragma once

#include "kernels/conv/channels_cuda.cuh"

namespace replayeval::cuda {

inline constexpr int kStepWarps = 4;
inline constexpr int kStepBlocks = 4;  // a multiprocessor

template <Dtype kDtype>
struct StepRow {
  std::int64_t slot;
  Channels<kDtype> in;
  uint4 state[kWindow];  // the lane's vectors of the warp's state, not those of the lane's channels
};

template <Dtype kDtype>
class ConvStep {
 public:
  __device__ __forceinline__ ConvStep(const ConvArguments& arguments, uint4* of_warp)
      : a_(arguments), conv_(arguments.conv), of_warp_(of_warp) {
    constexpr int kChannels = kLaneChannels<kDtype>;
    lane_ = static_cast<int>(threadIdx.x) % 32;
    const auto warp = static_cast<int>(threadIdx.x) / 32;
    first_ =
        (static_cast<std::int64_t>(blockIdx.x % static_cast<unsigned>(a_.tiles)) * kStepWarps + warp) * 32 * kChannels;
    lanes_ = static_cast<int>(min(std::int64_t{32}, max(std::int64_t{0}, (conv_.channels - first_) / kChannels)));
    channel_ = first_ + kChannels * lane_;
  }

  __device__ __forceinline__ void load_weights() { weights_.load(conv_, first_, lanes_, of_warp_); }

  __device__ __forceinline__ StepRow<kDtype> load(std::int64_t row) const {
    StepRow<kDtype> r;
    r.slot = conv_slot(a_.block, row);
    if (lane_ < lanes_) r.in.load(conv_.in, row * conv_.in_stride + channel_);
    if (!has_slot(conv_, r.slot)) return r;
    const uint4* from = state_of(r.slot);
#pragma unroll
    for (int i = 0; i < kWindow; ++i) {
      if (32 * i + lane_ < kWindow * lanes_) r.state[i] = from[32 * i + lane_];
    }
    return r;
  }

  __device__ __forceinline__ void finish(std::int64_t row, const StepRow<kDtype>& r) const {
    Channels<kDtype> out;
    const std::int64_t at = row * conv_.out_stride + channel_;
    if (!has_slot(conv_, r.slot)) {
      out.fill(output_without_slot(r.slot));
      if (lane_ < lanes_) out.store(conv_.out, at);
      return;
    }
    // Lanes without channels go along: what they compute is not stored.
    ChannelState<kDtype> state;
#pragma unroll
    for (int i = 0; i < kWindow; ++i) of_warp_[32 * i + lane_] = r.state[i];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kWindow; ++i) state.vectors[i] = of_warp_[kWindow * lane_ + i];
    float values[kLaneChannels<kDtype>];
#pragma unroll
    for (int c = 0; c < kLaneChannels<kDtype>; ++c) {
      const int oldest = kWindow * c;
      values[c] = weights_.sum(c, state.value(oldest), state.value(oldest + 1), state.value(oldest + 2), r.in.value(c));
      state.set_bits(oldest, state.bits(oldest + 1));
      state.set_bits(oldest + 1, state.bits(oldest + 2));
      state.set_bits(oldest + 2, r.in.bits(c));
    }
    gate_factors(true, values);
    out.pack(values);
    if (lane_ < lanes_) out.store(conv_.out, at);
    store_state(r.slot, state);
  }

 private:
  __device__ __forceinline__ uint4* state_of(std::int64_t slot) const {
    constexpr int kBytes = kDtype == Dtype::float32 ? 4 : 2;
    return reinterpret_cast<uint4*>(static_cast<char*>(conv_.state) +
                                    (slot * conv_.channels + first_) * kWindow * kBytes);
  }

  __device__ __forceinline__ void store_state(std::int64_t slot, const ChannelState<kDtype>& state) const {
#pragma unroll
    for (int i = 0; i < kWindow; ++i) of_warp_[kWindow * lane_ + i] = state.vectors[i];
    __syncwarp();
    uint4* to = state_of(slot);
#pragma unroll
    for (int i = 0; i < kWindow; ++i) {
      if (32 * i + lane_ < kWindow * lanes_) to[32 * i + lane_] = of_warp_[32 * i + lane_];
    }
    __syncwarp();
  }

  const ConvArguments& a_;
  const Conv& conv_;
  uint4* of_warp_;
  int lane_, lanes_;              // lanes_: of the warp that have channels
  std::int64_t first_, channel_;  // of the warp, of the lane
  ChannelWeights<kDtype> weights_;
};

template <Dtype kDtype>
__global__ void __launch_bounds__(32 * kStepWarps, kStepBlocks)
    conv_step_kernel(const __grid_constant__ ConvArguments a) {
  __shared__ uint4 shared[kStepWarps][kWarpVectors];
  wait_for_earlier_launches();
  let_later_launches_begin();
  ConvStep<kDtype> step(a, shared[threadIdx.x / 32]);
  const std::int64_t stride = gridDim.x / static_cast<unsigned>(a.tiles);
  std::int64_t row = blockIdx.x / static_cast<unsigned>(a.tiles);
  StepRow<kDtype> next = step.load(row);
  step.load_weights();
  for (; row < a.block.batch; row += stride) {
    const StepRow<kDtype> present = next;
    if (row + stride < a.block.batch) next = step.load(row + stride);
    step.finish(row, present);
  }
}

// As many blocks as the GPU holds at once, so that a warp's weights serve as many rows as they can.
template <Dtype kDtype>
void launch_conv_step(cudaStream_t stream, ConvArguments a) {
  const std::int64_t channels = std::int64_t{32} * kStepWarps * kLaneChannels<kDtype>;
  const std::int64_t tiles = (a.conv.channels + channels - 1) / channels;
  const std::int64_t at_once = kStepBlocks * device_attribute(cudaDevAttrMultiProcessorCount);
  const std::int64_t rows_at_once = std::clamp<std::int64_t>(at_once / tiles, 1, a.block.batch);
  a.tiles = static_cast<int>(tiles);
  launch(conv_step_kernel<kDtype>, dim3(conv_blocks(tiles * rows_at_once)), 32 * kStepWarps, 0, stream, a);
}

}  // namespace replayeval::cuda
