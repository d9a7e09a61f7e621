// Several tokens a sequence: a warp has 32 vectors of channels and walks through a chunk of a row's tokens, four at a
// time, with the window in registers and the next four tokens' inputs on their way.
#pragma once

#include "kernels/conv/channels_cuda.cuh"

namespace replayeval::cuda {

inline constexpr int kBlockWarps = 4;   // of a block, which take successive chunks
inline constexpr int kBlockBlocks = 4;  // a multiprocessor
inline constexpr int kTokensTogether = 4;
inline constexpr int kMostTokensAWarp = 32;

template <Dtype kDtype>
class ConvWalk {
 public:
  // The lane's channels of the row's tokens first_token .. end.
  __device__ __forceinline__ ConvWalk(const Conv& conv, std::int64_t first_row, std::int64_t slot, std::int64_t channel)
      : conv_(conv), first_row_(first_row), slot_(slot), channel_(channel) {}

  __device__ __forceinline__ void run(const ChannelWeights<kDtype>& weights, std::int64_t begin, std::int64_t end) {
    Channels<kDtype> window[kWindow];
    Channels<kDtype> next[kTokensTogether];
    load_window(begin, window);
    const auto* in_at = static_cast<const Element*>(conv_.in) + (first_row_ + begin) * conv_.in_stride + channel_;
    auto* out_at = static_cast<Element*>(conv_.out) + (first_row_ + begin) * conv_.out_stride + channel_;
    load(begin, end, in_at, next);
    for (std::int64_t token = begin; token < end; token += kTokensTogether) {
      Channels<kDtype> in[kTokensTogether], out[kTokensTogether];
#pragma unroll
      for (int j = 0; j < kTokensTogether; ++j) in[j] = next[j];
      load(token + kTokensTogether, end, in_at, next);
      convolve(weights, window, in, out);
#pragma unroll
      for (int j = 0; j < kTokensTogether; ++j) {
        if (token + j < end) out[j].store(out_at, 0);
        out_at += conv_.out_stride;
      }
#pragma unroll
      for (int k = 0; k < kWindow; ++k) window[k] = in[kTokensTogether - kWindow + k];
    }
  }

  // The state becomes the last inputs of the row's `tokens`; reads it first where they are fewer.
  __device__ __forceinline__ void move_state(std::int64_t tokens) {
    Channels<kDtype> window[kWindow];
    load_window(tokens, window);
    ChannelState<kDtype> state;
#pragma unroll
    for (int i = 0; i < kWindow * kLaneChannels<kDtype>; ++i) state.set_bits(i, window[i % kWindow].bits(i / kWindow));
    state.store(conv_.state, (slot_ * conv_.channels + channel_) * kWindow);
  }

 private:
  using Element = typename Channels<kDtype>::Element;

  // Tokens before `end`, from the one at `from` on, which moves on.
  __device__ __forceinline__ void load(std::int64_t token, std::int64_t end, const Element*& from,
                                       Channels<kDtype> (&to)[kTokensTogether]) const {
#pragma unroll
    for (int j = 0; j < kTokensTogether; ++j) {
      if (token + j < end) to[j].load(from, 0);
      from += conv_.in_stride;
    }
  }

  // The inputs before `token`, oldest first: of the block, and before its begin those that the state has.
  __device__ __forceinline__ void load_window(std::int64_t token, Channels<kDtype> (&window)[kWindow]) const {
    ChannelState<kDtype> state;
    if (token < kWindow) state.load(conv_.state, (slot_ * conv_.channels + channel_) * kWindow);
#pragma unroll
    for (int k = 0; k < kWindow; ++k) {
      const std::int64_t at = token - kWindow + k;
      if (at >= 0) {
        window[k].load(conv_.in, (first_row_ + at) * conv_.in_stride + channel_);
      } else {
        from_state(state, static_cast<int>(token) + k, window[k]);
      }
    }
  }

  // The state's `k`-th oldest input of each channel.
  __device__ static __forceinline__ void from_state(const ChannelState<kDtype>& state, int k, Channels<kDtype>& to) {
#pragma unroll
    for (int c = 0; c < kLaneChannels<kDtype>; ++c) {
      const int first = kWindow * c;
      to.set_bits(c, k == 0 ? state.bits(first) : k == 1 ? state.bits(first + 1) : state.bits(first + 2));
    }
  }

  __device__ static __forceinline__ void convolve(const ChannelWeights<kDtype>& weights,
                                                  const Channels<kDtype> (&window)[kWindow],
                                                  const Channels<kDtype> (&in)[kTokensTogether],
                                                  Channels<kDtype> (&out)[kTokensTogether]) {
    float values[kTokensTogether][kLaneChannels<kDtype>];
#pragma unroll
    for (int c = 0; c < kLaneChannels<kDtype>; ++c) {
      float inputs[kWindow + kTokensTogether], sums[kTokensTogether];
#pragma unroll
      for (int k = 0; k < kWindow; ++k) inputs[k] = window[k].value(c);
#pragma unroll
      for (int j = 0; j < kTokensTogether; ++j) inputs[kWindow + j] = in[j].value(c);
#pragma unroll
      for (int j = 0; j < kTokensTogether; ++j)
        sums[j] = weights.sum(c, inputs[j], inputs[j + 1], inputs[j + 2], inputs[j + 3]);
      gate_factors(true, sums);
#pragma unroll
      for (int j = 0; j < kTokensTogether; ++j) values[j][c] = sums[j];
    }
#pragma unroll
    for (int j = 0; j < kTokensTogether; ++j) out[j].pack(values[j]);
  }

  const Conv& conv_;
  std::int64_t first_row_, slot_, channel_;
};

template <Dtype kDtype>
__device__ inline void fill_chunk(const Conv& conv, std::int64_t first_row, std::int64_t channel, std::int64_t begin,
                                  std::int64_t end, float with) {
  Channels<kDtype> out;
  out.fill(with);
  for (std::int64_t token = begin; token < end; ++token)
    out.store(conv.out, (first_row + token) * conv.out_stride + channel);
}

// The warp that reads a row's state, as the one at its first token, is the one that moves it on.
template <Dtype kDtype>
__global__ void __launch_bounds__(32 * kBlockWarps, kBlockBlocks)
    conv_block_kernel(const __grid_constant__ ConvArguments a) {
  constexpr int kChannels = kLaneChannels<kDtype>;
  __shared__ uint4 shared[kBlockWarps][kWarpVectors];
  wait_for_earlier_launches();
  let_later_launches_begin();
  const auto tiles = static_cast<unsigned>(a.tiles);
  const auto chunks = static_cast<unsigned>(a.chunks);
  const unsigned warp = threadIdx.x / 32;
  const std::int64_t row = blockIdx.x / tiles / chunks;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x / tiles % chunks * kBlockWarps + warp) * a.chunk;
  const std::int64_t end = min(begin + a.chunk, a.block.tokens);
  if (begin >= end) return;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x % tiles) * 32 * kChannels;
  const int lanes = static_cast<int>(min(std::int64_t{32}, (a.conv.channels - first) / kChannels));
  ChannelWeights<kDtype> weights;
  weights.load(a.conv, first, lanes, shared[warp]);
  const auto lane = static_cast<int>(threadIdx.x % 32);
  if (lane >= lanes) return;
  const std::int64_t channel = first + kChannels * lane;
  const std::int64_t first_row = row * a.block.tokens;
  const std::int64_t slot = conv_slot(a.block, row);
  if (!has_slot(a.conv, slot)) {
    fill_chunk<kDtype>(a.conv, first_row, channel, begin, end, output_without_slot(slot));
    return;
  }
  ConvWalk<kDtype> walk(a.conv, first_row, slot, channel);
  walk.run(weights, begin, end);
  if (begin == 0) walk.move_state(a.block.tokens);
}

// Chunks are as long as leaves every multiprocessor its share of warps.
template <Dtype kDtype>
void launch_conv_block(cudaStream_t stream, ConvArguments a) {
  constexpr std::int64_t kChannels = std::int64_t{32} * kLaneChannels<kDtype>;
  const std::int64_t tiles = (a.conv.channels + kChannels - 1) / kChannels;
  const std::int64_t warps =
      std::int64_t{2} * kBlockWarps * kBlockBlocks * device_attribute(cudaDevAttrMultiProcessorCount);
  const std::int64_t share = a.block.batch * a.block.tokens * tiles / warps / kTokensTogether * kTokensTogether;
  const std::int64_t chunk = std::clamp<std::int64_t>(share, kTokensTogether, kMostTokensAWarp);
  const std::int64_t chunks = (a.block.tokens + chunk * kBlockWarps - 1) / (chunk * kBlockWarps);
  a.tiles = static_cast<int>(tiles);
  a.chunk = static_cast<int>(chunk);
  a.chunks = static_cast<int>(chunks);
  launch(conv_block_kernel<kDtype>, dim3(conv_blocks(a.block.batch * tiles * chunks)), 32 * kBlockWarps, 0, stream, a);
}

}  // namespace replayeval::cuda
