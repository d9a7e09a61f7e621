// One-token steps on a GPU that are captured once a shape and replayed at each token: a step of a hybrid model is
// hundreds of small kernels, which take longer to launch one by one than to run.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "eval/executors/device_graph.h"
#include "eval/executors/kernel_clock.h"
#include "eval/model/step_tables.h"

namespace replayeval {

// The steps of one cache. A step's shape is what the host decides about it: how many rows, how many keys attention
// reads and how it reads them, which rows stand where. All that differs from token to token is in StepTables. A shape
// runs as it is when it first comes, and is captured when it comes again.
class StepGraphs {
 public:
  // Everything of the step that the device does, cursors included: ids as run()'s.
  using Body = std::function<at::Tensor(const at::Tensor& ids, const RowSlots&, const PagedRows&, KernelClock*)>;

  // ids: [rows, 1] or [arms, rows, 1]; the step takes place on `device`. Returns what the body does, in memory of the
  // caller's own. The graph's work is clocked as KernelClock::add_replay() says.
  at::Tensor run(const at::Tensor& ids, const RowSlots& rows, const PagedRows& pages, const at::Device& device,
                 KernelClock* clock, const Body& body);

  void forget() { steps_.clear(); }  // where memory that steps read or write has moved

  // Why steps could not be captured, after it was tried; "" otherwise. They run as they are then.
  const std::string& failure() const { return failure_; }
  std::int64_t replays() const { return replays_; }

 private:
  struct Key {
    std::int64_t rows = 0, keys = 0, run_first = 0, run_stride = 0;
    bool in_place = false, aligned = false, identity = false, padded = false, shared_ids = false;
    bool clocked = false, by_parts = false;
    bool operator==(const Key&) const = default;
  };
  struct Step {
    Key key;
    StepTables tables;
    at::Tensor ids, out;
    std::unique_ptr<KernelClock> clock;
    std::unique_ptr<DeviceGraph> graph;
    bool ran = false;
  };

  Step& step_of(const Key& key, const at::Tensor& ids, const RowSlots& rows, const PagedRows& pages,
                const at::Device& device);
  static at::Tensor run_body(const Step& step, RowSlots rows, PagedRows pages, KernelClock* clock, const Body& body);
  bool capture(Step& step, const RowSlots& rows, const PagedRows& pages, const at::Device& device, const Body& body);

  std::list<Step> steps_;  // the latest first
  std::string failure_;
  std::int64_t replays_ = 0;
};

}  // namespace replayeval
