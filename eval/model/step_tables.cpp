#include "eval/model/step_tables.h"

#include <ATen/ATen.h>

#include <utility>

namespace replayeval {
namespace {

std::vector<std::int64_t> contents(const RowSlots& rows, const PagedRows& pages) {
  std::vector<std::int64_t> all = rows.positions();
  all.insert(all.end(), rows.slots().begin(), rows.slots().end());
  for (const std::int32_t slot : rows.slots()) all.push_back(slot < 0 ? 0 : 1);
  all.insert(all.end(), pages.table().begin(), pages.table().end());
  return all;
}

}  // namespace

StepTables::StepTables(const RowSlots& rows, const PagedRows& pages, const at::Device& device)
    : rows_(rows.rows()),
      pages_a_row_(pages.pages_a_row()),
      page_length_(pages.page_length()),
      identity_(rows.identity()),
      padded_(rows.padded()),
      table_(at::empty({rows_ * (3 + pages_a_row_)}, at::TensorOptions().dtype(at::kLong).device(device))),
      mixer_slots_(at::empty({rows_}, at::TensorOptions().dtype(at::kInt).device(device))) {}

void StepTables::update(const RowSlots& rows, const PagedRows& pages) {
  std::vector<std::int64_t> now = contents(rows, pages);
  if (now == here_) return;
  table_.copy_(at::tensor(now, at::kLong));
  mixer_slots_.copy_(part(rows_, rows_));
  here_ = std::move(now);
}

void StepTables::place(RowSlots& rows, PagedRows& pages) const {
  const at::Tensor positions = part(0, rows_).unsqueeze(1), present = part(2 * rows_, rows_);
  RowPlaces places;
  places.positions = positions;
  if (!identity_) places.mixer_slots = mixer_slots_;
  rows.place(1, table_.device(), std::move(places));
  if (pages_a_row_ == 0) return;  // no attention
  RowPages here;
  here.table = part(3 * rows_, rows_ * pages_a_row_);
  const at::Tensor page = here.table.view({rows_, pages_a_row_}).gather(1, positions.div(page_length_, "floor"));
  here.targets = page.mul(page_length_).add_(positions.remainder(page_length_)).squeeze(1);
  if (padded_) {
    here.present = present.ne(0);
    here.targets.mul_(present);
  }
  pages.place(table_.device(), std::move(here));
}

void StepTables::advance() const { part(0, rows_).add_(part(2 * rows_, rows_)); }

void StepTables::note_advance() {
  for (std::int64_t row = 0; row < rows_; ++row)
    here_[static_cast<std::size_t>(row)] += here_[static_cast<std::size_t>(2 * rows_ + row)];
}

}  // namespace replayeval
