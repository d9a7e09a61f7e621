// The state that checkpoint and ring stand for, on the CPU.
#include "kernels/delta_rule/backends.h"
#include "kernels/heads_cpu.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/delta_rule/reconstruct_cpu.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/delta_rule/window-inl.h"

#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace replayeval::delta_rule {
namespace HWY_NAMESPACE {

// S_w of a window, every product as a flush at this point would sum it.
void rebuild(const WindowCall& call, const Head& h, std::size_t count, const Window& w, float* out) {
  const bool inputs = call.form.ring_form == RingForm::inputs;
  const bool sequential = call.form.flush == Flush::sequential;
  const bool last_by_state = inputs && !sequential && count > 0;  // an inputs ring's newest d is read from the state
  if (last_by_state) find_deltas(h, count - 1, w);
  if (sequential) {
    decay_each(h, count, w);
  } else {
    weigh(h, count, w);
  }
  const std::size_t summed = last_by_state ? count - 1 : count;
  const Entries entries = entries_of(h, summed, inputs ? w.deltas : w.values, w);
  for (std::size_t p = 0; p < h.value_dim; p += kRows) {
    const float* checkpoint = w.state + p * h.key_dim;
    float* rows = out + p * h.key_dim;
    if (sequential) {
      std::copy_n(checkpoint, kRows * h.key_dim, rows);
      run_sequence(h, count, nullptr, p, w, rows);
      continue;
    }
    decayed_rows(entries, p, checkpoint, rows);
    if (!last_by_state) continue;
    const std::size_t own = count - 1;
    const Update newest{nullptr, w.k + own * h.key_dim, w.values + own * h.value_dim, w.beta[own], nullptr};
    update_rows(newest, p, h.key_dim, rows, nullptr);
  }
}

void reconstruct_head(const WindowCall& call, float* state_out, std::int64_t row, std::int64_t head, float* scratch) {
  const std::int64_t slot = replayeval::cpu::slot_of(call.block, row);
  const Head h(call.family, call.shape, slot, head);
  const std::size_t state_elements = h.value_dim * h.key_dim;
  float* out = state_out + static_cast<std::size_t>(row * call.shape.num_value_heads + head) * state_elements;
  if (slot < 0) {
    std::fill_n(out, state_elements, 0.0F);
    return;
  }
  const std::int64_t cursor = call.ring.cursor[slot];
  const Window w(h, call.form.buffer_len, scratch);
  load_window(call, h, slot, cursor, w);
  rebuild(call, h, static_cast<std::size_t>(cursor), w, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval::delta_rule
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace replayeval::delta_rule {
HWY_EXPORT(reconstruct_head);

namespace cpu {

void reconstruct(Family family, const Shape& shape, const ReplayForm& form, const Block& block, const State& state,
                 const Ring& ring, float* state_out) {
  const WindowCall call{family, shape, form, block, state, ring};
  const auto run_head = HWY_DYNAMIC_DISPATCH(reconstruct_head);
  replayeval::cpu::for_each_head(block.batch, shape.num_value_heads, window_floats(call), nullptr,
                                 [&](std::int64_t row, std::int64_t head, float* scratch, StorageCounts*) {
                                   run_head(call, state_out, row, head, scratch);
                                 });
}

}  // namespace cpu
}  // namespace replayeval::delta_rule
#endif  // HWY_ONCE
