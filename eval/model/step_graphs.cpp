#include "eval/model/step_graphs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace replayeval {
namespace {

// A graph holds the activations of a step. Rows that come and go take turns among a few shapes.
constexpr std::size_t most_steps = 8;

}  // namespace

StepGraphs::Step& StepGraphs::step_of(const Key& key, const at::Tensor& ids, const RowSlots& rows,
                                      const PagedRows& pages, const at::Device& device) {
  const auto found = std::find_if(steps_.begin(), steps_.end(), [&](const Step& step) { return step.key == key; });
  if (found != steps_.end()) {
    steps_.splice(steps_.begin(), steps_, found);
    return steps_.front();
  }
  // The same kernels, with whatever clock.
  const auto is_twin = [&](Key other) {
    other.clocked = key.clocked, other.by_parts = key.by_parts;
    return other == key;
  };
  const bool ran = std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) { return is_twin(step.key); });
  if (steps_.size() == most_steps) steps_.pop_back();
  steps_.push_front({key,
                     StepTables(rows, pages, device),
                     at::empty(ids.sizes(), ids.options().device(device)),
                     {},
                     nullptr,
                     nullptr,
                     ran});
  return steps_.front();
}

at::Tensor StepGraphs::run_body(const Step& step, RowSlots rows, PagedRows pages, KernelClock* clock,
                                const Body& body) {
  step.tables.place(rows, pages);
  const at::Tensor out = body(step.ids, rows, pages, clock);
  step.tables.advance();
  return out;
}

bool StepGraphs::capture(Step& step, const RowSlots& rows, const PagedRows& pages, const at::Device& device,
                         const Body& body) {
  if (step.key.clocked)
    step.clock =
        std::make_unique<KernelClock>(DeviceKind::cuda, KernelClock::Timing::in_graph,
                                      step.key.by_parts ? KernelClock::Mixers::parts : KernelClock::Mixers::whole);
  try {
    step.graph = std::make_unique<DeviceGraph>(device, [&] {
      const KernelClock::GraphScope all(step.clock.get(), "", "shared");
      step.out = run_body(step, rows, pages, step.clock.get(), body);
    });
  } catch (const std::exception& error) {
    failure_ = error.what();
    return false;
  }
  return true;
}

at::Tensor StepGraphs::run(const at::Tensor& ids, const RowSlots& rows, const PagedRows& pages,
                           const at::Device& device, KernelClock* clock, const Body& body) {
  const std::optional<PageRun>& run = pages.run();
  const bool by_parts = clock != nullptr && clock->in_graphs() == KernelClock::Mixers::parts;
  const Key key = {rows.rows(),    pages.keys(),    run ? run->first : 0, run ? run->stride : 0, run.has_value(),
                   rows.aligned(), rows.identity(), rows.padded(),        ids.dim() == 2,        clock != nullptr,
                   by_parts};
  Step& step = step_of(key, ids, rows, pages, device);
  step.tables.update(rows, pages);
  step.ids.copy_(ids);
  step.tables.note_advance();
  const bool replayed = step.ran && failure_.empty() && (step.graph || capture(step, rows, pages, device, body));
  step.ran = true;
  if (!replayed) return run_body(step, rows, pages, clock, body);
  step.graph->replay();
  ++replays_;
  if (clock != nullptr) clock->add_replay(*step.clock);
  return step.out.clone();
}

}  // namespace replayeval
