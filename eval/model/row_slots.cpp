#include "eval/model/row_slots.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace replayeval {
namespace {

void check_slots(const std::vector<std::int32_t>& slots, std::size_t count) {
  std::set<std::int32_t> seen;
  for (std::size_t row = 0; row < slots.size(); ++row) {
    const std::int32_t slot = slots[row];
    if (slot < 0) continue;
    if (static_cast<std::size_t>(slot) >= count)
      throw std::invalid_argument("slots: row " + std::to_string(row) + " says slot " + std::to_string(slot) +
                                  "; expected at most " + std::to_string(count - 1) + ", or less than 0 for padding");
    if (!seen.insert(slot).second)
      throw std::invalid_argument("slots: slot " + std::to_string(slot) + " comes twice, again at row " +
                                  std::to_string(row) + "; expected a row for each");
  }
  if (seen.empty()) throw std::invalid_argument("slots: no row has a slot; expected at least one");
}

at::Tensor tensor_on(const at::Device& device, const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace

RowSlots::RowSlots(std::vector<std::int64_t> positions) : slots_(positions.size()), positions_(std::move(positions)) {
  std::iota(slots_.begin(), slots_.end(), 0);
  look_at_positions();
}

RowSlots::RowSlots(std::vector<std::int32_t> slots, const std::vector<std::int64_t>& slot_positions)
    : slots_(std::move(slots)) {
  check_slots(slots_, slot_positions.size());
  identity_ = slots_.size() == slot_positions.size();
  for (std::size_t row = 0; row < slots_.size(); ++row) {
    const std::int32_t slot = slots_[row];
    padded_ = padded_ || slot < 0;
    identity_ = identity_ && slot == static_cast<std::int32_t>(row);
    positions_.push_back(slot < 0 ? 0 : slot_positions[static_cast<std::size_t>(slot)]);
  }
  look_at_positions();
}

void RowSlots::look_at_positions() {
  longest_ = *std::max_element(positions_.begin(), positions_.end());
  aligned_ = !padded_ && std::all_of(positions_.begin(), positions_.end(),
                                     [this](std::int64_t position) { return position == longest_; });
}

RowPlaces RowSlots::make_places(std::int64_t tokens, const at::Device& device) const {
  const auto longs = at::TensorOptions().dtype(at::kLong).device(device);
  RowPlaces places;
  places.positions = aligned_ ? at::arange(longest_, longest_ + tokens, longs).expand({rows(), tokens})
                              : tensor_on(device, positions_).unsqueeze(1) + at::arange(tokens, longs);
  if (identity_) return places;
  places.mixer_slots = at::tensor(slots_, at::kInt).to(device);
  std::vector<std::int64_t> readable, present;
  for (std::int64_t row = 0; row < rows(); ++row) {
    const std::int32_t slot = slots_[static_cast<std::size_t>(row)];
    readable.push_back(std::max(slot, 0));
    if (slot >= 0) present.push_back(row);
  }
  places.slots = tensor_on(device, readable);
  if (padded_) places.present = tensor_on(device, present);
  return places;
}

const RowPlaces& RowSlots::places(std::int64_t tokens, const at::Device& device) const {
  for (const Placed& placed : placed_)
    if (placed.device == device && placed.tokens == tokens) return placed.places;
  return placed_.emplace_back(Placed{device, tokens, make_places(tokens, device)}).places;
}

void RowSlots::place(std::int64_t tokens, const at::Device& device, RowPlaces places) {
  placed_.push_back({device, tokens, std::move(places)});
}

}  // namespace replayeval
