// The pages of a call's rows, as attention reads and writes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "eval/model/key_value_pages.h"
#include "eval/model/row_slots.h"

namespace replayeval {

// The same on a device.
struct RowPages {
  at::Tensor table;    // [rows * pages] int64: each row's pages in order, 0 where it has none; undefined with a run
  at::Tensor targets;  // [present rows * tokens] int64: the new tokens' places in a pool; undefined for an aligned run
};

// Pools are [heads, pages * page_length, dim].
class PagedRows {
 public:
  PagedRows() = default;  // of a model without attention
  // Rows that have pages for `tokens` more. Read at once: `pages` may change afterwards.
  PagedRows(const KeyValuePages& pages, const RowSlots& rows, std::int64_t tokens);

  // The rows' first `tokens` tokens: [rows, heads, tokens, dim], in place where the rows' pages stand in a row.
  at::Tensor read(const at::Tensor& pool, std::int64_t tokens) const;
  // Puts fresh: [rows, tokens, heads, dim] behind what the rows hold; padded rows go nowhere.
  void write(const at::Tensor& pool, const at::Tensor& fresh, const RowPlaces& places) const;

 private:
  struct Placed {
    at::Device device;
    RowPages pages;
  };

  const RowPages& on(const at::Device& device) const;  // made at a call's first use, for all of its layers

  std::int64_t page_length_ = 0, rows_ = 0, pages_a_row_ = 0, position_ = 0;
  std::optional<PageRun> run_;
  bool aligned_ = false;
  std::vector<std::int64_t> table_, targets_;
  mutable std::list<Placed> placed_;  // a list: references to its elements stay
};

}  // namespace replayeval
