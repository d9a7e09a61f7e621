#include "eval/comparator/interrupt.h"

#include <atomic>
#include <csignal>

namespace replayeval {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void request(int signal) {
  requested = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void install_interrupt_handler() {
  std::signal(SIGINT, request);
  std::signal(SIGTERM, request);
}

bool interrupt_requested() { return requested; }

void stop_if_asked() {
  if (interrupt_requested()) throw Interrupted("stopped");
}

}  // namespace replayeval
