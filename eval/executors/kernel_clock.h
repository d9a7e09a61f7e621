// Where the time goes: seconds by (arm, kernel), wall clock on the CPU, events on CUDA; also inside a graph, whose
// clock times each mixer, as a whole or by its parts, and counts everything else as one: an event costs some
// microseconds there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/types.h"

namespace replayeval {

struct KernelSeconds {
  std::string arm;     // "" for work shared by all arms
  std::string kernel;  // mamba2, conv, gated_norm, attention, dense, norm, embedding, head, ...
  std::int64_t calls = 0;
  double seconds = 0.0;
};

class KernelClock {
 public:
  enum class Timing : std::uint8_t { live, in_graph };
  enum class Mixers : std::uint8_t { whole, parts };  // what graphs time

  explicit KernelClock(DeviceKind device, Timing timing = Timing::live, Mixers in_graphs = Mixers::whole);
  ~KernelClock();

  Mixers in_graphs() const;

  // Times from construction to destruction; in a graph only an arm's own work, and that only by parts. A null clock is
  // allowed and costs nothing.
  class Scope {
   public:
    Scope(KernelClock* clock, const std::string& arm, const std::string& kernel);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    KernelClock* clock_;
  };

  // The same inside a graph, where it stands for all scopes in it; nothing otherwise, nor where an arm's are timed by
  // parts.
  class GraphScope {
   public:
    GraphScope(KernelClock* clock, const std::string& arm, const std::string& kernel);
    ~GraphScope();
    GraphScope(const GraphScope&) = delete;
    GraphScope& operator=(const GraphScope&) = delete;

   private:
    KernelClock* clock_;
  };

  std::vector<KernelSeconds> totals();  // waits for the device

  // Adds the latest replay of the graph in which the graph scopes of `captured` were opened, and waits for it. Of these
  // the one that is open around all others is less what the others took. captured: Timing::in_graph.
  void add_replay(const KernelClock& captured);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace replayeval
