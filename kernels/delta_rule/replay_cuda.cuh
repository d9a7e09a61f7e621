// The replay executor on the GPU: the checkpoint in registers, the ring in shared memory, each rounded where a chain of
// single steps would store it. A step is one launch, its flush included.
#pragma once

#include "kernels/delta_rule/replay_token_cuda.cuh"

namespace replayeval::delta_rule::cuda {

// Keeps what the products need of the checkpoint.
template <RingForm kForm, Dtype kState, bool kChannels, class T>
__device__ __forceinline__ void keep_checkpoint(const SharedWindow<kChannels>& w, const T& tile,
                                                const typename T::template Stored<kState>& stored) {
  if constexpr (kReadsByProducts<kChannels, kForm, T> && kReadsProducts<T, kState>) keep_rows(w, tile, stored);
}

template <class T, Dtype kState>
__device__ __forceinline__ void load_checkpoint(const ReplayArguments& a, const BlockHead& h, T& tile) {
  typename T::template Stored<kState> stored;
  tile.template load<kState>(a.state.data, h.state_offset, stored);
  tile.template unpack<kState>(stored);
}

// The tile, S_w, becomes the checkpoint.
template <RingForm kForm, Dtype kState, bool kChannels, class T>
__device__ __forceinline__ void store_checkpoint(const ReplayArguments& a, const BlockHead& h,
                                                 const SharedWindow<kChannels>& w, T& tile, ThreadCounts& counts) {
  typename T::template Stored<kState> stored;
  const bool saturate = a.state.storage.overflow == Overflow::saturate;
  tile.template pack<kState>(saturate, a.state.counts != nullptr, counts, stored);
  tile.template store<kState>(a.state.data, h.state_offset, stored);
  keep_checkpoint<kForm, kState>(w, tile, stored);
  tile.template unpack<kState>(stored);
}

template <bool kChannels>
__device__ __forceinline__ void prefetch_ring(const ReplayArguments& a, const BlockHead& h) {
  if (h.slot < 0 || h.slot >= a.state.slots) return;
  const auto L = static_cast<int>(a.form.buffer_len);
  const auto K = static_cast<int>(a.shape.key_dim);
  const auto V = static_cast<int>(a.shape.value_dim);
  const int gates = kChannels ? K : 1;
  const RingOffsets at(a.shape, a.form, h);
  prefetch_entries(a.ring.k, a.form.ring_dtype, at.key_head * K, K, L, K);
  prefetch_entries(a.ring.values, a.form.ring_dtype, at.head * V + h.first_row, V, L, h.rows);
  prefetch_entries(a.ring.log_decay, Dtype::float32, at.head * gates, L * gates, 1, L * gates);
}

// What a call is: any, or the single step by the output_only route, the case that speed hangs on.
enum class Calls { any, one_step };

// One token at `position`; on return the tile is the checkpoint of the next, if there is `more`.
template <class T, Dtype kState, bool kChannels, RingForm kForm, Calls kCalls>
__device__ __forceinline__ void replay_token(const ReplayArguments& a, const BlockHead& h, T& tile,
                                             const SharedWindow<kChannels>& w, int position, std::int64_t token,
                                             bool more, ThreadCounts& counts) {
  const int count = position + 1;
  const bool flush = count == a.form.buffer_len;
  float y;
  if (flush || (kCalls == Calls::any && a.form.route == Route::state_and_output)) {
    y = build_state<kChannels, kForm, kState>(w, a.form, tile, count);
    if (flush) {
      store_checkpoint<kForm, kState>(a, h, w, tile, counts);
    } else if (more) {
      load_checkpoint<T, kState>(a, h, tile);
    }
  } else if constexpr (kForm == RingForm::deltas) {
    y = read_by_deltas<kState>(w, a.form.ring_dtype, tile, count);
  } else {
    y = read_by_adjoint(w, tile, count);
  }
  if (!tile.writes_row()) return;
  const std::int64_t to = h.x_offset(a.shape, token, a.out.y_stride) + tile.block_row + T::own_row();
  store_element(a.out.y, to, y, a.out.dtype);
}

// What the block leaves in the ring's memory: all of a single step's entry; of a longer block only a deltas ring's d,
// which nobody else reads. append_tail_kernel does the rest, since other blocks may still read the positions.
template <bool kChannels, RingForm kForm>
__device__ __forceinline__ void append(const ReplayArguments& a, const BlockHead& h, int cursor,
                                       const SharedWindow<kChannels>& w) {
  const auto L = static_cast<int>(a.form.buffer_len);
  const std::int64_t last = cursor + a.block.tokens;
  if (a.block.tokens == 1 && last < L) {
    append_values(a, h, cursor, w);
    append_shared<kChannels, kForm>(a, h, cursor, target_of<kChannels, kForm>(w, cursor), w.key_dim);
  } else if (kForm == RingForm::deltas) {
    const auto end = static_cast<int>(last % L);
    for (int position = last < L ? cursor : 0; position < end; ++position) append_values(a, h, position, w);
  }
}

template <class T, Dtype kState, bool kChannels, RingForm kForm, Calls kCalls>
__global__ void __launch_bounds__(32 * kMaxWarps, kCalls == Calls::one_step ? 3 : 2)
    replay_kernel(const __grid_constant__ ReplayArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block, a.cut);
  if constexpr (kCalls == Calls::one_step) {
    prefetch_state<kState>(a.state, h, static_cast<int>(a.shape.key_dim));
    prefetch_ring<kChannels>(a, h);
    wait_for_earlier_launches();
    let_later_launches_begin();
  }
  if (h.slot < 0 || h.slot >= a.state.slots) {
    fill_y(a.shape, a.block, a.out, h, h.slot < 0 ? 0.0F : nanf(""));
    return;
  }
  // Everything that does not depend on the cursor is on its way before the cursor is waited for.
  const auto L = static_cast<int>(a.form.buffer_len);
  const auto K = static_cast<int>(a.shape.key_dim);
  const std::int64_t tokens = kCalls == Calls::one_step ? 1 : a.block.tokens;
  const std::int64_t first_token = h.row * tokens;
  T tile(K, h.rows);
  typename T::template Stored<kState> stored;
  tile.template load<kState>(a.state.data, h.state_offset, stored);
  TokenOperands<kChannels> operands;
  operands.load(a.shape, a.in, h, first_token);
  const int cursor = a.ring.cursor[h.slot];
  if (cursor < 0 || cursor >= L) {
    fill_y(a.shape, a.block, a.out, h, nanf(""));
    return;
  }
  const SharedWindow<kChannels> w(memory, L, K, a.cut.rows_per_block);
  load_window(a.shape, a.form, a.ring, h, cursor, w);
  int position = cursor;
  operands.store(a.shape, a.in, a.parameters, h, target_of<kChannels, kForm>(w, position));
  keep_checkpoint<kForm, kState>(w, tile, stored);
  __syncthreads();
  tile.template unpack<kState>(stored);

  ThreadCounts counts;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const bool more = kCalls == Calls::any && t + 1 < tokens;
    if (more) operands.load(a.shape, a.in, h, first_token + t + 1);
    replay_token<T, kState, kChannels, kForm, kCalls>(a, h, tile, w, position, first_token + t, more, counts);
    __syncthreads();
    if (!more) break;
    round_entry(a, h, position, w);
    if (L == 1) __syncthreads();  // the next entry takes the same place
    position = position + 1 == L ? 0 : position + 1;
    operands.store(a.shape, a.in, a.parameters, h, target_of<kChannels, kForm>(w, position));
    __syncthreads();
  }
  append<kChannels, kForm>(a, h, cursor, w);
  if (a.state.counts != nullptr && cursor + tokens >= L) add_counts(counts, a.state.counts);
}

// After a block of several tokens: the entries that are live at its end and came from it, made ready once more.
template <bool kChannels, RingForm kForm>
__global__ void __launch_bounds__(32 * kMaxWarps) append_tail_kernel(const __grid_constant__ ReplayArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block, a.cut);
  const auto L = static_cast<int>(a.form.buffer_len);
  if (h.slot < 0 || h.slot >= a.state.slots) return;
  const int cursor = a.ring.cursor[h.slot];
  if (cursor < 0 || cursor >= L) return;
  const auto K = static_cast<int>(a.shape.key_dim);
  const SharedWindow<kChannels> w(memory, 1, K, a.cut.rows_per_block);
  const bool wraps = cursor + a.block.tokens >= L;
  const int begin = wraps ? 0 : cursor;
  const auto end = static_cast<int>((cursor + a.block.tokens) % L);
  const std::int64_t first_token = h.row * a.block.tokens + (wraps ? a.block.tokens - end : 0);
  TokenTarget token = target_of<kChannels, kForm>(w, 0);
  token.vectors = nullptr;  // only for what reads the state
  TokenOperands<kChannels> operands;
  for (int position = begin; position < end; ++position) {
    operands.load(a.shape, a.in, h, first_token + position - begin);
    __syncthreads();
    operands.store(a.shape, a.in, a.parameters, h, token);
    __syncthreads();
    append_shared<kChannels, kForm>(a, h, position, token, K);
    if constexpr (kForm == RingForm::inputs) {
      const RingOffsets at(a.shape, a.form, h);
      const std::int64_t first = (at.head + position) * static_cast<int>(a.shape.value_dim) + h.first_row;
      for (int i = static_cast<int>(threadIdx.x); i < h.rows; i += static_cast<int>(blockDim.x)) {
        store_element(a.ring.values, first + i, token.v[i], a.form.ring_dtype);
      }
    }
  }
}

template <class T, Dtype kState, bool kChannels, RingForm kForm>
void launch_replay(cudaStream_t stream, const HeadGrid& grid, const ReplayArguments& arguments) {
  const auto bytes = [&](std::int64_t entries) {
    const std::size_t window =
        SharedWindow<kChannels>::bytes(entries, arguments.shape.key_dim, grid.cut.rows_per_block);
    if constexpr (!kReadsByProducts<kChannels, kForm, T>) return window;
    return window + SharedWindow<kChannels>::product_bytes(kReadsProducts<T, kState> ? grid.cut.rows_per_block : 0);
  };
  const auto launch_block = [&](auto kernel, std::size_t shared) {
    allow_shared(kernel, shared);
    kernel<<<grid.blocks, grid.threads, shared, stream>>>(arguments);
    expect_launched("delta_rule replay");
  };
  if constexpr (T::kIsWhole) {
    if (arguments.block.tokens == 1 && arguments.form.route == Route::output_only) {
      const auto kernel = replay_kernel<T, kState, kChannels, kForm, Calls::one_step>;
      allow_shared(kernel, bytes(arguments.form.buffer_len));
      replayeval::cuda::launch(kernel, grid.blocks, grid.threads, bytes(arguments.form.buffer_len), stream, arguments);
      return;
    }
  }
  launch_block(replay_kernel<T, kState, kChannels, kForm, Calls::any>, bytes(arguments.form.buffer_len));
  if (arguments.block.tokens > 1) launch_block(append_tail_kernel<kChannels, kForm>, bytes(1));
}

// The family's part of replay(): kChannels, a decay for each key channel.
template <bool kChannels>
void replay_family(cudaStream_t stream, const ReplayArguments& call) {
  with_tile(call.shape, call.state.storage.dtype, [&]<class T, Dtype kState>() {
    for_batch(head_grid(head_shape(call.shape), call.block.batch, T::kWarpRows), call.block.batch,
              [&](const HeadGrid& grid) {
                ReplayArguments arguments = call;
                arguments.cut = grid.cut;
                if (call.form.ring_form == RingForm::deltas) {
                  launch_replay<T, kState, kChannels, RingForm::deltas>(stream, grid, arguments);
                } else {
                  launch_replay<T, kState, kChannels, RingForm::inputs>(stream, grid, arguments);
                }
              });
  });
}

extern template void replay_family<false>(cudaStream_t, const ReplayArguments&);  // in kernels/gated_delta
extern template void replay_family<true>(cudaStream_t, const ReplayArguments&);   // in kernels/kda

}  // namespace replayeval::delta_rule::cuda
