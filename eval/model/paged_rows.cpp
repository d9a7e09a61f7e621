#include "eval/model/paged_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace replayeval {
namespace {

at::Tensor in_place(const at::Tensor& pool, const PageRun& run, std::int64_t page_length, std::int64_t rows,
                    std::int64_t tokens) {
  const std::int64_t dim = pool.size(2), page = page_length * dim;
  return pool.as_strided({rows, pool.size(0), tokens, dim}, {run.stride * page, pool.stride(0), dim, 1},
                         run.first * page);
}

}  // namespace

PagedRows::PagedRows(const KeyValuePages& pages, const RowSlots& rows, std::int64_t tokens,
                     std::optional<std::int64_t> key_step)
    : page_length_(pages.page_length()),
      rows_(rows.rows()),
      keys_(round_up(rows.longest() + tokens, key_step.value_or(1))),
      pages_a_row_(pages.pages_for(keys_)),
      position_(rows.longest()),
      run_(pages.run(rows.slots(), keys_)),
      aligned_(rows.aligned()),
      rounded_(key_step.has_value()) {
  table_.assign(static_cast<std::size_t>(rows_ * pages_a_row_), 0);
  for (std::int64_t row = 0; row < rows_; ++row) {
    const std::int32_t slot = rows.slots()[static_cast<std::size_t>(row)];
    if (slot < 0) continue;
    const std::vector<std::int64_t>& own = pages.of_slot(slot);
    std::copy_n(own.begin(), std::min(static_cast<std::int64_t>(own.size()), pages_a_row_),
                table_.begin() + row * pages_a_row_);
    if (run_ && aligned_) continue;
    const std::int64_t position = rows.positions()[static_cast<std::size_t>(row)];
    for (std::int64_t token = position; token < position + tokens; ++token)
      targets_.push_back(own[static_cast<std::size_t>(token / page_length_)] * page_length_ + token % page_length_);
  }
}

const at::Tensor& PagedRows::mask(const StepMask& what, const std::function<at::Tensor()>& make) const {
  for (const auto& [known, mask] : masks_)
    if (known == what) return mask;
  return masks_.emplace_back(what, make()).second;
}

void PagedRows::place(const at::Device& device, RowPages pages) {
  placed_by_others_ = true;
  placed_.push_back({device, std::move(pages)});
}

const RowPages& PagedRows::on(const at::Device& device) const {
  for (const Placed& placed : placed_)
    if (placed.device == device) return placed.pages;
  RowPages pages;
  if (!run_) pages.table = at::tensor(table_, at::kLong).to(device);
  if (!targets_.empty()) pages.targets = at::tensor(targets_, at::kLong).to(device);
  return placed_.emplace_back(Placed{device, std::move(pages)}).pages;
}

at::Tensor PagedRows::read(const at::Tensor& pool, std::int64_t tokens) const {
  if (run_) return in_place(pool, *run_, page_length_, rows_, tokens);
  const std::int64_t heads = pool.size(0), dim = pool.size(2);
  const at::Tensor found = pool.view({heads, -1, page_length_ * dim}).index_select(1, on(pool.device()).table);
  return found.view({heads, rows_, -1, dim}).transpose(0, 1).narrow(2, 0, tokens);
}

void PagedRows::write(const at::Tensor& pool, const at::Tensor& fresh, const RowPlaces& places) const {
  const std::int64_t tokens = fresh.size(1);
  if (run_ && aligned_ && !placed_by_others_) {
    in_place(pool, *run_, page_length_, rows_, position_ + tokens)
        .narrow(2, position_, tokens)
        .copy_(fresh.transpose(1, 2));
    return;
  }
  const RowPages& there = on(pool.device());
  at::Tensor present = fresh;
  if (there.present.defined())
    present = at::where(there.present.view({rows_, 1, 1, 1}), fresh, at::zeros({}, fresh.options()));
  else if (places.present.defined())
    present = fresh.index_select(0, places.present);
  pool.transpose(0, 1).index_put_({there.targets}, present.flatten(0, 1));
}

}  // namespace replayeval
