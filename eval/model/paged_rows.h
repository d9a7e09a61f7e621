// The pages of a call's rows, as attention reads and writes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "eval/model/key_value_pages.h"
#include "eval/model/row_slots.h"

namespace replayeval {

// The same on a device.
struct RowPages {
  at::Tensor table;    // [rows * pages] int64: each row's pages in order, 0 where it has none; undefined with a run
  at::Tensor targets;  // [present rows * tokens] int64: the new tokens' places in a pool; undefined for an aligned run
  at::Tensor present;  // [rows] bool: `targets` has a place for padded rows, too, on page 0, which must stay zeros;
};                     // undefined where it has none

// Pools are [heads, pages * page_length, dim].
class PagedRows {
 public:
  PagedRows() = default;  // of a model without attention
  // Rows that have pages for `tokens` more. Attention reads as many keys as the longest row has then; with `key_step`
  // these are rounded up to a multiple of it, behind a row's own come zeros, and the last token's mask hides them: a
  // shape that many tokens share. Read at once: `pages` may change afterwards.
  PagedRows(const KeyValuePages& pages, const RowSlots& rows, std::int64_t tokens,
            std::optional<std::int64_t> key_step = {});

  std::int64_t keys() const { return keys_; }
  bool rounded() const { return rounded_; }
  std::int64_t page_length() const { return page_length_; }
  std::int64_t pages_a_row() const { return pages_a_row_; }  // as many as `keys` need
  const std::optional<PageRun>& run() const { return run_; }
  const std::vector<std::int64_t>& table() const { return table_; }  // [rows * pages_a_row()], 0: none

  // What hides the keys of a step with rounded() keys; made once for all layers and arms that ask for the same.
  struct StepMask {
    at::Device device;
    at::ScalarType type;
    std::int64_t group;
    std::optional<std::int64_t> window;
    bool operator==(const StepMask&) const = default;
  };
  const at::Tensor& mask(const StepMask& what, const std::function<at::Tensor()>& make) const;

  // `pages` is what on() answers for `device`: memory that others keep up to date.
  void place(const at::Device& device, RowPages pages);

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

  std::int64_t page_length_ = 0, rows_ = 0, keys_ = 0, pages_a_row_ = 0, position_ = 0;
  std::optional<PageRun> run_;
  bool aligned_ = false, rounded_ = false, placed_by_others_ = false;
  std::vector<std::int64_t> table_, targets_;
  mutable std::list<Placed> placed_;  // lists: references to their elements stay
  mutable std::list<std::pair<StepMask, at::Tensor>> masks_;
};

}  // namespace replayeval
