// One row of the bench's table: a layer's caches and one token, or a block of them, for every sequence of a batch.
// State and ring buffers are rotated so that no step finds its state in a cache.
#pragma once

#include "kernels/bench/bench_device.h"
#include "kernels/decode.h"

#include <cstdint>
#include <string>
#include <vector>

namespace replayeval::bench {

// What the rows of a table share, whatever the family.
struct ReplayOptions {
  std::int64_t buffer_len = 16;
  Route route = Route::output_only;
  Flush flush = Flush::summed;
  Dtype ring = Dtype::bfloat16;
  std::int64_t tokens = 1;  // of a sequence in a call
};

// Which part of a case is made: sequences from first_sequence on have the same data in every case of that kind. One
// copy of the caches is enough where nothing is timed.
struct Part {
  std::int64_t first_sequence = 0;
  bool one_copy = false;
};

class DecodeCase {
 public:
  virtual ~DecodeCase() = default;

  // One call for every copy of the caches; for replay the `step`-th of a ring cycle. In step all sequences are at that
  // ring position; mixed, sequence b is b positions ahead.
  void exact_steps();
  void replay_steps(std::int64_t step, bool mixed);
  std::size_t copies() const { return states_.size(); }
  // y of one of the batch's sequences, all its tokens, after the last step of the first copy, unless other copies
  // stepped since.
  std::vector<float> y(std::int64_t sequence) const;
  void exact_step_of_first_copy() { exact_step(state(0)); }
  void replay_step_of_first_copy(std::int64_t step) {
    replay_step(state(0), 0, in_step_[static_cast<std::size_t>(step)]);
  }

  // Bytes of state, ring, inputs and output that a step has to move; replay's over a ring cycle: L steps read the state
  // L times and write it once, read 0 + 1 + … + (L - 1) entries and write L - 1. A block of tokens reads and writes the
  // state once.
  double exact_bytes() const { return 2.0 * state_bytes() + static_cast<double>(block_.tokens) * token_bytes(); }
  double replay_bytes() const;

 protected:
  // state_elements: of one sequence.
  DecodeCase(BenchDevice& device, const ReplayOptions& options, std::int64_t batch, const Part& part, Dtype state,
             std::int64_t state_elements);

  virtual void exact_step(const State& state) = 0;
  virtual void replay_step(const State& state, std::size_t copy, const std::int32_t* cursor) = 0;
  virtual double token_bytes() const = 0;  // inputs and output of one token of all sequences
  virtual double entry_bytes() const = 0;  // a ring entry of all sequences

  std::size_t bytes_of(std::int64_t per_row, Dtype dtype) const;
  // Memory on the device for `per_row` elements a sequence, filled with a normal distribution's values.
  void* normal(std::int64_t per_row, Dtype dtype);
  // The same for `width` elements a token.
  void* input(std::int64_t width) { return normal(width * block_.tokens, Dtype::bfloat16); }
  float* zeros(std::int64_t per_row);
  // y of `width` elements a token.
  Output make_output(std::int64_t width, Dtype dtype);
  // The same `count` parameters between -1 and 1 at every call with the same seed.
  float* uniform(std::int64_t count, unsigned seed);

  BenchDevice& device_;
  ReplayOptions options_;
  DecodeBlock block_;
  Part part_;
  Output out_;

 private:
  double state_bytes() const { return static_cast<double>(bytes_of(state_elements_, state_dtype_)); }
  State state(std::size_t copy) const;

  Dtype state_dtype_;
  std::int64_t state_elements_;
  std::vector<void*> states_;
  StorageCounts* counts_ = nullptr;             // where blocks are timed: an evaluation counts
  std::vector<std::int32_t*> in_step_, mixed_;  // cursors; one array a step of the ring cycle
};

}  // namespace replayeval::bench
