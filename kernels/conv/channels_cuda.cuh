// The convolution over a 16-byte vector of channels, which a thread has in registers: four taps, a warp beside itself
// along the channels. Sums run as in conv.h, whoever calls.
#pragma once

#include "kernels/conv/arguments_cuda.cuh"
#include "kernels/elements_cuda.cuh"
#include "kernels/silu_cuda.cuh"

namespace replayeval::cuda {

inline constexpr int kTaps = 4;
inline constexpr int kWindow = kTaps - 1;  // inputs that the state keeps of a channel

template <Dtype kDtype>
inline constexpr int kLaneChannels = kDtype == Dtype::float32 ? 4 : 8;  // 16 bytes of them

template <Dtype kDtype>
using Channels = Elements<kDtype, kLaneChannels<kDtype>>;
template <Dtype kDtype>
using ChannelState = Elements<kDtype, kLaneChannels<kDtype> * kWindow>;  // channel by channel, oldest first

// A warp's memory to turn what lies beside one another in global memory into what each of its threads needs.
inline constexpr int kWarpVectors = 32 * 8;  // of 16 bytes: the weights of eight channels a thread

template <Dtype kDtype>
struct ChannelWeights {
  static constexpr int kChannels = kLaneChannels<kDtype>;
  float4 weight[kChannels];
  float bias[kChannels];

  // For the channels from `first` + kChannels * lane on; `lanes` of the warp have some. All lanes take part.
  __device__ __forceinline__ void load(const Conv& conv, std::int64_t first, int lanes, uint4* of_warp) {
    auto* staged = reinterpret_cast<float4*>(of_warp);
    const auto* from = reinterpret_cast<const float4*>(conv.weight) + first;
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < lanes) load_bias(conv.bias == nullptr ? nullptr : conv.bias + first + kChannels * lane);
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      const int channel = 32 * i + lane;
      if (channel < kChannels * lanes) staged[place(channel)] = from[channel];
    }
    __syncwarp();
    if (lane < lanes) {
#pragma unroll
      for (int i = 0; i < kChannels; ++i) weight[i] = staged[place(kChannels * lane + i)];
    }
    __syncwarp();
  }

  // Channel c's sum over the window's inputs, oldest first.
  __device__ __forceinline__ float sum(int c, float in0, float in1, float in2, float in3) const {
    const float oldest = fmaf(weight[c].x, in0, bias[c]);
    return fmaf(weight[c].w, in3, fmaf(weight[c].z, in2, fmaf(weight[c].y, in1, oldest)));
  }

 private:
  // Spread so that eight threads that each read their own channels' weights meet eight different sets of banks.
  __device__ static __forceinline__ int place(int channel) { return channel ^ (channel / kChannels % kChannels); }

  __device__ __forceinline__ void load_bias(const float* from) {
#pragma unroll
    for (int i = 0; i < kChannels; i += 4) {
      const float4 four = from == nullptr ? float4{} : *reinterpret_cast<const float4*>(from + i);
      bias[i] = four.x, bias[i + 1] = four.y, bias[i + 2] = four.z, bias[i + 3] = four.w;
    }
  }
};

// Whether the vector kernels can serve a call.
inline bool channels_aligned(const Conv& conv) {
  const auto vectors = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; };
  return conv.conv_kernel == kTaps && conv.channels * static_cast<std::int64_t>(dtype_size(conv.dtype)) % 16 == 0 &&
         rows_aligned(conv.in, conv.in_stride, conv.dtype) && rows_aligned(conv.out, conv.out_stride, conv.dtype) &&
         vectors(conv.state) && vectors(conv.weight) && vectors(conv.bias);
}

}  // namespace replayeval::cuda
