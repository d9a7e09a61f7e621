// The causal convolution on the CPU: a thread takes 64 channels of a row through all its tokens.
#include "kernels/conv/backends.h"
#include "kernels/heads_cpu.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_cpu.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/chunk-inl.h"
#include "kernels/silu-inl.h"
#include "kernels/storage_simd-inl.h"

#include <hwy/highway.h>

#include <algorithm>

#ifndef REPLAYEVAL_KERNELS_CONV_CPU_ONCE
#define REPLAYEVAL_KERNELS_CONV_CPU_ONCE
namespace replayeval {

inline constexpr std::size_t kConvLanes = 64;  // channels a task takes
inline constexpr std::size_t kMaxTaps = 8;

}  // namespace replayeval
#endif

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {

// Channels beyond the last stay zero: nothing here crosses channels.
struct ConvLanes {
  alignas(64) float bias[kConvLanes] = {};
  alignas(64) float weight[kMaxTaps][kConvLanes] = {};
  alignas(64) float window[kMaxTaps][kConvLanes] = {};  // the last inputs, oldest first
  alignas(64) float out[kConvLanes] = {};
};

void load_conv(const Conv& conv, std::int64_t slot, std::int64_t first, std::size_t lanes, ConvLanes& local) {
  const auto taps = static_cast<std::size_t>(conv.conv_kernel);
  for (std::size_t i = 0; i < lanes; ++i) {
    const auto channel = static_cast<std::size_t>(first) + i;
    if (conv.bias != nullptr) local.bias[i] = conv.bias[channel];
    const std::size_t kept = (static_cast<std::size_t>(slot * conv.channels) + channel) * (taps - 1);
    for (std::size_t k = 0; k < taps; ++k) local.weight[k][i] = conv.weight[channel * taps + k];
    for (std::size_t k = 0; k + 1 < taps; ++k) local.window[k][i] = storage::load(conv.state, kept + k, conv.dtype);
  }
}

void store_conv_state(const Conv& conv, std::int64_t slot, std::int64_t first, std::size_t lanes,
                      const ConvLanes& local) {
  const auto taps = static_cast<std::size_t>(conv.conv_kernel);
  const Storage exactly{conv.dtype, Overflow::infinity};  // the window holds values of this type already
  for (std::size_t i = 0; i < lanes; ++i) {
    const auto channel = static_cast<std::size_t>(first) + i;
    const std::size_t kept = (static_cast<std::size_t>(slot * conv.channels) + channel) * (taps - 1);
    for (std::size_t k = 0; k + 1 < taps; ++k) storage::store(conv.state, kept + k, local.window[k][i], exactly);
  }
}

void conv_token(std::size_t taps, ConvLanes& local) {
  for (std::size_t i = 0; i < kConvLanes; i += kChunk) {
    Chunk sum = Chunk::load(local.bias + i);
    for (std::size_t k = 0; k < taps; ++k) {
      sum = fma(Chunk::load(local.weight[k] + i), Chunk::load(local.window[k] + i), sum);
    }
    silu(sum).store(local.out + i);
    for (std::size_t k = 0; k + 1 < taps; ++k) Chunk::load(local.window[k + 1] + i).store(local.window[k] + i);
  }
}

void conv_lanes(const DecodeBlock& block, const Conv& conv, std::int64_t row, std::int64_t part) {
  const std::int64_t first = part * static_cast<std::int64_t>(kConvLanes);
  const auto lanes = static_cast<std::size_t>(std::min(static_cast<std::int64_t>(kConvLanes), conv.channels - first));
  const auto taps = static_cast<std::size_t>(conv.conv_kernel);
  const std::int64_t slot = cpu::slot_of(block, row);
  const Storage rounding{conv.dtype, Overflow::infinity};
  ConvLanes local;
  if (slot >= 0) load_conv(conv, slot, first, lanes, local);
  for (std::int64_t token = row * block.tokens; token < (row + 1) * block.tokens; ++token) {
    if (slot >= 0) {
      widen(conv.dtype, conv.in, token * conv.in_stride + first, lanes, local.window[taps - 1]);
      conv_token(taps, local);
    }
    narrow(rounding, local.out, lanes, conv.out, token * conv.out_stride + first);
  }
  if (slot >= 0) store_conv_state(conv, slot, first, lanes, local);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace replayeval {
HWY_EXPORT(conv_lanes);

namespace cpu {

void causal_conv(const DecodeBlock& block, const Conv& conv) {
  const auto lanes = static_cast<std::int64_t>(kConvLanes);
  const std::int64_t parts = (conv.channels + lanes - 1) / lanes;
  const auto run = HWY_DYNAMIC_DISPATCH(conv_lanes);
#pragma omp parallel for schedule(static) if (block.batch * parts > 1)
  for (std::int64_t task = 0; task < block.batch * parts; ++task) run(block, conv, task / parts, task % parts);
}

}  // namespace cpu
}  // namespace replayeval
#endif  // HWY_ONCE
