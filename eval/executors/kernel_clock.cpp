#include "eval/executors/kernel_clock.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <map>
#include <utility>

#include "eval/executors/device_graph.h"

namespace replayeval {
namespace {

using Steady = std::chrono::steady_clock;

c10::Event record_now() {
  const c10::impl::VirtualGuardImpl cuda(c10::DeviceType::CUDA);
  c10::Event event(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);  // with timing
  event.record(cuda.getStream(cuda.getDevice()));
  return event;
}

}  // namespace

struct KernelClock::Impl {
  struct Open {  // a scope that has not ended; scopes end in the reverse order of their beginning
    std::size_t entry;
    Steady::time_point wall;
    std::unique_ptr<c10::Event> begin;
  };
  struct Pending {  // a CUDA interval whose events may not have happened yet
    std::size_t entry;
    c10::Event begin, end;
  };
  struct Captured {  // an interval of each replay
    std::size_t entry;
    std::unique_ptr<GraphEvent> begin, end;
  };
  static constexpr std::size_t most_pending = 2048;  // bounds the events that a long run holds

  DeviceKind device;
  Timing timing;
  Mixers in_graphs;
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  std::vector<KernelSeconds> entries;
  std::vector<Open> open;
  std::vector<Pending> pending;
  std::vector<Captured> captured;          // in the order of their beginning
  std::vector<std::size_t> captured_open;  // of these, those that have not ended

  bool takes(const std::string& arm) const {
    return timing == Timing::live || (in_graphs == Mixers::parts && !arm.empty());
  }
  bool takes_in_graph(const std::string& arm) const {
    return timing == Timing::in_graph && (in_graphs == Mixers::whole || arm.empty());
  }

  std::size_t entry_of(const std::string& arm, const std::string& kernel) {
    const auto [place, added] = index.try_emplace({arm, kernel}, entries.size());
    if (added) entries.push_back({arm, kernel, 0, 0.0});
    return place->second;
  }

  void begin_captured(std::size_t entry) {
    captured_open.push_back(captured.size());
    captured.push_back({entry, std::make_unique<GraphEvent>(), nullptr});
  }

  void end_captured() {
    captured[captured_open.back()].end = std::make_unique<GraphEvent>();
    captured_open.pop_back();
  }

  void begin(std::size_t entry) {
    open.push_back(
        {entry, Steady::now(), device == DeviceKind::cuda ? std::make_unique<c10::Event>(record_now()) : nullptr});
  }

  void end() {
    Open scope = std::move(open.back());
    open.pop_back();
    ++entries[scope.entry].calls;
    if (device == DeviceKind::cpu) {
      entries[scope.entry].seconds += std::chrono::duration<double>(Steady::now() - scope.wall).count();
      return;
    }
    pending.push_back({scope.entry, std::move(*scope.begin), record_now()});
    if (pending.size() >= most_pending) settle(most_pending / 2);  // the later half may not have happened yet
  }

  void settle(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Pending& interval = pending[i];
      interval.end.synchronize();
      entries[interval.entry].seconds += interval.begin.elapsedTime(interval.end) / 1000.0;  // from milliseconds
    }
    pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(count));
  }
};

KernelClock::KernelClock(DeviceKind device, Timing timing, Mixers in_graphs) : impl_(std::make_unique<Impl>()) {
  impl_->device = device;
  impl_->timing = timing;
  impl_->in_graphs = in_graphs;
}
KernelClock::Mixers KernelClock::in_graphs() const { return impl_->in_graphs; }
KernelClock::~KernelClock() = default;

KernelClock::Scope::Scope(KernelClock* clock, const std::string& arm, const std::string& kernel)
    : clock_(clock == nullptr || !clock->impl_->takes(arm) ? nullptr : clock) {
  if (clock_ == nullptr) return;
  Impl& impl = *clock_->impl_;
  if (impl.timing == Timing::live)
    impl.begin(impl.entry_of(arm, kernel));
  else
    impl.begin_captured(impl.entry_of(arm, kernel));
}

KernelClock::Scope::~Scope() {
  if (clock_ == nullptr) return;
  if (clock_->impl_->timing == Timing::live)
    clock_->impl_->end();
  else
    clock_->impl_->end_captured();
}

KernelClock::GraphScope::GraphScope(KernelClock* clock, const std::string& arm, const std::string& kernel)
    : clock_(clock == nullptr || !clock->impl_->takes_in_graph(arm) ? nullptr : clock) {
  if (clock_ != nullptr) clock_->impl_->begin_captured(clock_->impl_->entry_of(arm, kernel));
}

KernelClock::GraphScope::~GraphScope() {
  if (clock_ != nullptr) clock_->impl_->end_captured();
}

std::vector<KernelSeconds> KernelClock::totals() {
  impl_->settle(impl_->pending.size());
  return impl_->entries;
}

void KernelClock::add_replay(const KernelClock& captured) {
  const Impl& graph = *captured.impl_;
  double of_arms = 0.0;
  for (std::size_t i = graph.captured.size(); i-- > 0;) {  // the outermost, which began first, at last
    const Impl::Captured& interval = graph.captured[i];
    const KernelSeconds& what = graph.entries[interval.entry];
    const double seconds = interval.begin->seconds_until(*interval.end);
    KernelSeconds& entry = impl_->entries[impl_->entry_of(what.arm, what.kernel)];
    ++entry.calls;
    entry.seconds += i == 0 ? seconds - of_arms : seconds;
    of_arms += seconds;
  }
}

}  // namespace replayeval
