// What a one-token step needs to know of its rows, in device memory that stays where it is: a step that was captured
// once finds there what has changed since.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "eval/model/paged_rows.h"
#include "eval/model/row_slots.h"

namespace replayeval {

class StepTables {
 public:
  // For steps of as many rows and keys as these have.
  StepTables(const RowSlots& rows, const PagedRows& pages, const at::Device& device);

  // Before each step: copies to the device what is not there yet. Nothing is where each row has moved on by the step
  // before, which the device knows itself.
  void update(const RowSlots& rows, const PagedRows& pages);

  // Parts of the step itself, all on the device. The first makes `rows` and `pages` read the tables; the other comes
  // when all layers are done.
  void place(RowSlots& rows, PagedRows& pages) const;
  void advance() const;
  void note_advance();  // what a step does to the tables is known here: once for each step that runs

 private:
  at::Tensor part(std::int64_t begin, std::int64_t count) const { return table_.narrow(0, begin, count); }

  std::int64_t rows_, pages_a_row_, page_length_;
  bool identity_, padded_;
  std::vector<std::int64_t> here_;  // positions, slots (padded: -1), whether a row is one, each row's pages
  at::Tensor table_;                // the same on the device
  at::Tensor mixer_slots_;          // [rows] int32
};

}  // namespace replayeval
