// The output_only replay executor over a block of tokens at the tuned state size. The bits are those of
// replay_block_cuda.cuh.
//
// A window is the tokens between two flushes. What its tokens need beside S_0 C — the entries' weights and B · C — is
// small and the same for all rows of a head or of all its group, so a block prepares it once a window.
#include "kernels/mamba2/scan_backends_cuda.h"
#include "kernels/mamba2/scan_cuda.cuh"
#include "kernels/ring_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

struct ReplayScanArguments {
  Shape shape;
  ReplayForm form;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Ring ring;
  Output out;
  HeadCut cut;
  bool reads_fours, writes_fours;
};

constexpr int kMostEntries = 32;  // of a ring: a lane has a token of the window

// y is summed for eight tokens a lane.
constexpr int kTokensTogether = 8;
__host__ __device__ inline int padded(std::int64_t buffer_len) {
  return (static_cast<int>(buffer_len) + kTokensTogether - 1) / kTokensTogether * kTokensTogether;
}

// In shared memory; a position is that of the ring's entry, `capacity` of them padded().
struct ReplayWindow {
  int capacity, rows;
  float* weights;  // [heads, capacity, capacity]: of an entry, for a token
  float* scales;   // [heads, capacity]: of S_0, for a token
  float* dt;       // [heads, capacity]
  float* dots;     // [capacity, capacity]: B of an entry · C of a token
  float* sums;     // [warps, capacity, 16]: S_0 C
  char* operands;  // of ScanOperands

  __device__ __forceinline__ ReplayWindow(char* memory, int capacity_, int rows_, int heads)
      : capacity(capacity_), rows(rows_) {
    weights = reinterpret_cast<float*>(memory);
    scales = weights + heads * capacity * capacity;
    dt = scales + heads * capacity;
    dots = dt + heads * capacity;
    sums = dots + capacity * capacity;
    operands = reinterpret_cast<char*>(sums + capacity * rows);
  }
  __host__ __device__ static std::size_t bytes(int capacity, int rows, int heads, Dtype dtype) {
    const int floats = heads * capacity * (capacity + 2) + capacity * capacity + capacity * rows;
    return static_cast<std::size_t>(floats) * sizeof(float) + ScanOperands::bytes(capacity, rows, dtype);
  }
};

// The positions of a window's tokens: [begin, end); those before are the ring's. A flush is at the last.
struct Span {
  int begin, end;
  bool flush;
  __device__ __forceinline__ int unflushed() const { return flush ? end - 1 : end; }
};

__device__ __forceinline__ void load_entries(const ReplayScanArguments& a, const ScanRows& r, int entries,
                                             const ReplayWindow& window, const ScanOperands& operands) {
  constexpr int kColumns = kScanColumns;
  const std::int64_t L = a.form.buffer_len;
  const auto P = static_cast<int>(a.shape.head_dim);
  const std::int64_t head = r.slot * a.shape.num_heads + r.first_head;
  const std::int64_t group = r.slot * a.shape.num_groups + r.group;
  for (int i = 4 * static_cast<int>(threadIdx.x); i < entries * kColumns; i += 4 * static_cast<int>(blockDim.x)) {
    float B[4];
    load_ring4(a.ring.B, group * L * kColumns + i, a.form.ring_dtype, B);
    ScanTile::store_columns(operands.B, i, B);
  }
  const int row_fours = r.rows / 4;
  copy_ring4(
      a.ring.x, a.form.ring_dtype, entries * row_fours,
      [&](int i) {
        const int row = r.first_row + 4 * (i % row_fours);
        return ((r.slot * a.shape.num_heads + row / P) * L + i / row_fours) * P + row % P;
      },
      [&](int i) { return operands.x + i / row_fours * kMostRows + 4 * (i % row_fours); });
  for (int i = static_cast<int>(threadIdx.x); i < r.heads * entries; i += static_cast<int>(blockDim.x)) {
    window.dt[i / entries * window.capacity + i % entries] = a.ring.dt[(head + i / entries) * L + i % entries];
  }
}

// What each entry and S_0 weigh for the window's tokens: scalars_cuda.cuh's ring_weights() for all of them. A lane has
// a token, kLanes of them together every kParts-th entry.
template <int kLanes>
__device__ __forceinline__ void weigh_entries(const ReplayScanArguments& a, const ScanRows& r, const Span& span,
                                              const ReplayWindow& window) {
  constexpr int kParts = 128 / kLanes;
  const int n = window.capacity;
  const int token = static_cast<int>(threadIdx.x) % kLanes;
  const bool has_token = token >= span.begin && token < span.end;
  const auto together = static_cast<int>(blockDim.x) / kLanes;
  for (int first_of_warp = static_cast<int>(threadIdx.x) / 32 * (32 / kLanes); first_of_warp < r.heads * kParts;
       first_of_warp += together) {
    const int i = first_of_warp + static_cast<int>(threadIdx.x) % 32 / kLanes;  // heads * kParts: of whole warps
    const int head = i / kParts;
    const float rate = decay_rate(a.parameters.A_log[r.first_head + head]);
    float* const weights = window.weights + head * n * n;
    float dt = token < span.end ? window.dt[head * n + token] : 0.0F;  // of entry token - back
    if (i % kParts == 0 && has_token) weights[token * n + token] = dt;
    float after = 0.0F;  // the sum of dt from the token's down to that of entry token - back + 1
    for (int first = 1; first <= span.end; first += kParts) {
      float own_after = 0.0F;
      float own_dt = 0.0F;
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        after = after + dt;
        dt = __shfl_sync(0xFFFFFFFFU, dt, (token + kLanes - 1) % kLanes, kLanes);
        own_after = part == i % kParts ? after : own_after;
        own_dt = part == i % kParts ? dt : own_dt;
      }
      const int entry = token - first - i % kParts;
      if (!has_token || entry < -1) continue;
      const float decay = expf(rate * own_after);
      if (entry >= 0) {
        weights[entry * n + token] = own_dt * decay;
      } else {
        window.scales[head * n + token] = decay;
      }
    }
  }
}

// B · C of the window's tokens with the entries up to them, by all warps.
__device__ __forceinline__ void multiply_entries(const Span& span, const ReplayWindow& window,
                                                 const ScanOperands& operands) {
  const int n = window.capacity;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto warps = static_cast<int>(blockDim.x) / 32;
  const int eights = n / 8;
  for (int i = warp; i < n / 2 * eights; i += warps) {
    const int tokens = i / eights * 2;   // this one and the next
    const int entries = i % eights * 8;  // eight, two a quarter of the warp
    if (tokens + 1 < span.begin || tokens >= span.end || entries > tokens + 1) continue;
    const int entry = entries + lane / 8 * 2;
    const float dot = dot_two_by_two(operands.C + tokens * kScanColumns, operands.B + entry * kScanColumns);
    const int e = lane % 8 / 2;
    if (lane % 2 == 0) window.dots[(entry + e % 2) * n + tokens + e / 2] = dot;
  }
}

// The entries' weights become those of x in y, but for the flush's token.
__device__ __forceinline__ void weigh_dots(const ScanRows& r, const Span& span, const ReplayWindow& window) {
  const int n = window.capacity;
  const int token = static_cast<int>(threadIdx.x) % 32;
  const auto warps = static_cast<int>(blockDim.x) / 32;
  for (int i = static_cast<int>(threadIdx.x) / 32; i < r.heads * n; i += warps) {
    const int entry = i % n;
    if (token < span.begin || token >= span.unflushed() || entry > token) continue;
    window.weights[i * n + token] = window.weights[i * n + token] * window.dots[entry * n + token];
  }
}

// Adds what the entries give to y of the warp's rows, where `sums` has S_0 C: for the window's tokens but a flush's. A
// lane has a row and eight tokens. x: at the warp's rows.
__device__ __forceinline__ void add_entries(const ScanRows& r, const Span& span, const ReplayWindow& window,
                                            float* sums, const float* x) {
  const int n = window.capacity;
  const int row = static_cast<int>(threadIdx.x) % 16;
  const float* const weights = window.weights + r.warp_head * n * n;
  const float* const scales = window.scales + r.warp_head * n;
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x) % 32 / 16 * kTokensTogether; first < span.unflushed();
       first += 2 * kTokensTogether) {
    if (first + kTokensTogether <= span.begin) continue;
    float y[kTokensTogether];
#pragma unroll
    for (int k = 0; k < kTokensTogether; ++k) y[k] = scales[first + k] * sums[(first + k) * 16 + row];
    const auto add_entry = [&](int entry, int from) {
      const float entry_x = x[entry * kMostRows + row];
      float weight[2][4];
      load4<Dtype::float32>(weights, entry * n + first, weight[0]);
      load4<Dtype::float32>(weights, entry * n + first + 4, weight[1]);
#pragma unroll
      for (int k = 0; k < kTokensTogether; ++k) {
        if (k >= from) y[k] = fmaf(weight[k / 4][k % 4], entry_x, y[k]);
      }
    };
#pragma unroll 4
    for (int entry = 0; entry < first; ++entry) add_entry(entry, 0);
#pragma unroll
    for (int k = 0; k < kTokensTogether; ++k) add_entry(first + k, k);
#pragma unroll
    for (int k = 0; k < kTokensTogether; ++k) sums[(first + k) * 16 + row] = y[k];
  }
}

// The flush: the tile becomes the state after all entries, and its token's S C is returned.
template <Dtype kState>
__device__ __forceinline__ float flush(const ReplayScanArguments& a, const ScanRows& r, const ReplayWindow& window,
                                       const ScanOperands& operands, ScanTile& tile, ThreadCounts& counts) {
  const int n = window.capacity;
  const auto last = static_cast<int>(a.form.buffer_len) - 1;
  const float* const weights = window.weights + r.warp_head * n * n + last;
  const float scale = window.scales[r.warp_head * n + last];
  const float* const x = operands.x + r.warp_row;
  if (kState != Dtype::float32 && a.form.ring_dtype == Dtype::bfloat16 && last > 0) {
    tile.add_together(scale, weights, n, x, kMostRows, operands.B, last);
    tile.add_outer(weights[last * n], x + last * kMostRows, operands.B + last * kScanColumns);
  } else {
    tile.multiply(scale);
#pragma unroll 2
    for (int j = 0; j <= last; ++j) tile.add_outer(weights[j * n], x + j * kMostRows, operands.B + j * kScanColumns);
  }
  float shares[ScanTile::kRows];
  tile.dot(operands.C + last * kScanColumns, shares);
  bool settled = false;
  tile.round<kState, true, 1>(a.state.storage.overflow == Overflow::saturate, shares, false, settled, counts);
  return ScanTile::fold_shares(shares);
}

// S_0 C for the window's tokens but a flush's. A token's shares are summed among the next one's products.
__device__ __forceinline__ void multiply_checkpoint(const ScanTile& tile, const Span& span,
                                                    const ScanOperands& operands, float* sums) {
  float shares[ScanTile::kRows] = {};
  float* const own = sums + ScanTile::own_row();
  const auto put_sums = [&](int token) {
    const float sum = ScanTile::fold_shares(shares);
    if (ScanTile::writes_row()) own[token * ScanTile::kWarpRows] = sum;
  };
  if (span.begin == span.unflushed()) return;
  __syncwarp();  // lets the compiler put the exchanges among the products
  tile.dot(operands.C + span.begin * kScanColumns, shares);
#pragma unroll 1
  for (int t = span.begin + 1; t < span.unflushed(); ++t) {
    float next[ScanTile::kRows];
    tile.dot(operands.C + t * kScanColumns, next);
    put_sums(t - 1);
#pragma unroll
    for (int r = 0; r < ScanTile::kRows; ++r) shares[r] = next[r];
  }
  put_sums(span.unflushed() - 1);
}

template <Dtype kState>
__global__ void __launch_bounds__(32 * kMaxWarps, kScanBlocks)
    replay_scan_kernel(const __grid_constant__ ReplayScanArguments a) {
  extern __shared__ __align__(16) char scan_memory[];
  const ScanRows r(head_shape(a.shape), a.block, a.cut);
  const auto L = static_cast<int>(a.form.buffer_len);
  const int cursor = r.has_slot(a.state) ? a.ring.cursor[r.slot] : -1;
  if (cursor < 0 || cursor >= L) return fill_rows(a.block, a.out, r);
  const ReplayWindow window(scan_memory, padded(L), r.rows, r.heads);
  const ScanOperands operands(window.operands, window.capacity, r, a.in, a.reads_fours);
  ScanTimeSteps time_steps(window.capacity);
  const auto tokens = static_cast<int>(a.block.tokens);
  const auto span_from = [&](int position, int token) {
    const int end = min(L, position + tokens - token);
    return Span{position, end, end == L};
  };
  Span span = span_from(cursor, 0);
  std::int64_t token = r.first_token(a.block);
  operands.fetch(token, span.end - span.begin);
  time_steps.fetch(a.in, r, token, span.end - span.begin);
  ScanTile tile;
  tile.load<kState>(a.state.data, r.state_row(head_shape(a.shape)));
  load_entries(a, r, cursor, window, operands);

  const float D = a.parameters.D[r.first_head + r.warp_head];
  float* const sums = window.sums + r.warp_row * window.capacity;
  ThreadCounts counts;
  bool flushed = false;
#pragma unroll 1
  for (int done = 0; done < tokens;) {
    const int count = span.end - span.begin;
    operands.take(token, count, span.begin, [](int /*t*/, const float(&)[3][4]) {});
    if (time_steps.has_one(r, count)) {
      window.dt[time_steps.head() * window.capacity + span.begin + time_steps.place()] =
          time_steps.take(a.in, a.parameters, r);
    }
    __syncthreads();
    const Span next = span_from(0, done + count);
    operands.fetch(token + count, next.end);
    time_steps.fetch(a.in, r, token + count, next.end);
    if (window.capacity <= 16) {
      weigh_entries<16>(a, r, span, window);
    } else {
      weigh_entries<32>(a, r, span, window);
    }
    multiply_entries(span, window, operands);
    multiply_checkpoint(tile, span, operands, sums);
    __syncthreads();
    weigh_dots(r, span, window);
    __syncthreads();
    add_entries(r, span, window, sums, operands.x + r.warp_row);
    __syncwarp();
    if (span.flush) {
      const float sum = flush<kState>(a, r, window, operands, tile, counts);
      if (ScanTile::writes_row()) sums[(L - 1) * 16 + ScanTile::own_row()] = sum;
      flushed = true;
    }
    __syncwarp();
    write_y(a.out, a.writes_fours, r, D, sums + span.begin * 16, operands.x + span.begin * kMostRows + r.warp_row,
            token, count);
    __syncthreads();
    done += count;
    token += count;
    span = next;
  }
  if (!flushed) return;
  tile.store<kState>(a.state.data, r.state_row(head_shape(a.shape)));
  if (a.state.counts != nullptr) add_counts(counts, a.state.counts);
}

template <Dtype kState>
void launch_replay(cudaStream_t stream, const HeadGrid& grid, const ReplayScanArguments& arguments) {
  const int rows = grid.cut.rows_per_block;
  const auto P = static_cast<int>(arguments.shape.head_dim);
  const std::size_t shared =
      ReplayWindow::bytes(padded(arguments.form.buffer_len), rows, most_heads(rows, P), arguments.in.dtype);
  allow_shared(replay_scan_kernel<kState>, shared);
  replay_scan_kernel<kState><<<grid.blocks, grid.threads, shared, stream>>>(arguments);
  expect_launched("replay, a block of tokens");
}

}  // namespace

bool replay_scan(cudaStream_t stream, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
                 const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  HeadGrid all;
  // A ring that rounds what comes in would need both, the rounded and the unrounded.
  const bool rounds = form.ring_dtype == Dtype::bfloat16 && in.dtype != Dtype::bfloat16;
  if (form.route != Route::output_only || form.flush != Flush::summed || form.buffer_len > kMostEntries || rounds ||
      !scan_grid(head_shape(shape), block, all)) {
    return false;
  }
  for_batch(all, block.batch, [&](const HeadGrid& grid) {
    const ReplayScanArguments arguments{
        shape, form, block, in, parameters, state, ring, out, grid.cut, reads_fours(in), writes_fours(out)};
    if (state.storage.dtype == Dtype::float32) {
      launch_replay<Dtype::float32>(stream, grid, arguments);
    } else if (state.storage.dtype == Dtype::bfloat16) {
      launch_replay<Dtype::bfloat16>(stream, grid, arguments);
    } else {
      launch_replay<Dtype::float16>(stream, grid, arguments);
    }
  });
  return true;
}

}  // namespace replayeval::mamba2::cuda
