#include "eval/model/key_value_pages.h"

#include <algorithm>
#include <string>

namespace replayeval {

KeyValuePages::KeyValuePages(std::int64_t slots, std::int64_t capacity, const KeyValuePageOptions& options)
    : options_(options), tables_(static_cast<std::size_t>(std::max<std::int64_t>(slots, 0))), taken_(1, true) {
  if (options.page_length < 1 || options.limit.value_or(1) < 1)
    throw std::invalid_argument("decode cache: pages of " + std::to_string(options.page_length) + " tokens" +
                                (options.limit ? ", at most " + std::to_string(*options.limit) : "") +
                                "; expected at least one of each");
  most_a_slot_ = pages_for(capacity);
}

std::optional<PageMoves> KeyValuePages::reserve(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths) {
  std::int64_t more = 0, longest = 0;
  for (const auto& [slot, tokens] : lengths) {
    more += std::max<std::int64_t>(0, pages_for(tokens) - static_cast<std::int64_t>(of_slot(slot).size()));
    longest = std::max(longest, pages_for(tokens));
  }
  if (more == 0) return {};
  if (options_.limit && held_ + more > *options_.limit)
    throw OutOfPages("decode cache: " + std::to_string(more) + " more pages of " +
                     std::to_string(options_.page_length) + " tokens beside the " + std::to_string(held_) +
                     " held; expected at most the limit of " + std::to_string(*options_.limit));
  const std::optional<PageMoves> moves = grow(more, longest);
  for (const auto& [slot, tokens] : lengths) {
    std::vector<std::int64_t>& table = tables_[static_cast<std::size_t>(slot)];
    while (static_cast<std::int64_t>(table.size()) < pages_for(tokens))
      table.push_back(take(table.empty() ? 1 + slot * extent_ : table.back() + 1));
  }
  return moves;
}

std::int64_t KeyValuePages::take(std::int64_t wanted) {
  if (!is_free(wanted)) {
    while (!is_free(first_maybe_)) ++first_maybe_;
    wanted = first_maybe_;
  }
  taken_[static_cast<std::size_t>(wanted)] = true;
  ++held_;
  return wanted;
}

std::vector<std::int64_t> KeyValuePages::release(std::int64_t slot, std::int64_t kept) {
  std::vector<std::int64_t>& table = tables_[static_cast<std::size_t>(slot)];
  const auto end = table.begin() + std::min(kept, static_cast<std::int64_t>(table.size()));
  const std::vector<std::int64_t> pages(end, table.end());
  table.erase(end, table.end());
  for (const std::int64_t page : pages) {
    taken_[static_cast<std::size_t>(page)] = false;
    first_maybe_ = std::min(first_maybe_, page);
  }
  held_ -= static_cast<std::int64_t>(pages.size());
  return pages;
}

void KeyValuePages::release_all() {
  for (std::size_t slot = 0; slot < tables_.size(); ++slot) release(static_cast<std::int64_t>(slot));
}

// Half as many again as are needed, so that copies are few. Where all slots hold about as many tokens each gets a
// stretch of its own: such rows are read in place.
std::optional<PageMoves> KeyValuePages::grow(std::int64_t more, std::int64_t longest) {
  const std::int64_t needed = held_ + more;
  if (pages() - 1 >= needed) return {};
  for (const auto& table : tables_) longest = std::max(longest, static_cast<std::int64_t>(table.size()));
  const auto slots = static_cast<std::int64_t>(tables_.size());
  const auto half_more = [](std::int64_t pages) { return pages + (pages + 1) / 2; };
  std::int64_t extent = std::max(longest, std::min(half_more(longest), most_a_slot_)), all = half_more(needed);
  if (options_.limit) {
    extent = std::max(longest, std::min(extent, *options_.limit / slots));
    all = std::min(all, *options_.limit);
  }
  const std::int64_t even = extent * slots;
  if (even <= 2 * needed && even <= options_.limit.value_or(even)) return spread_evenly(extent);
  return append_pages(1 + all);
}

PageMoves KeyValuePages::spread_evenly(std::int64_t extent) {
  PageMoves moves;
  moves.pages = 1 + extent * static_cast<std::int64_t>(tables_.size());
  taken_.assign(static_cast<std::size_t>(moves.pages), false);
  taken_[0] = true;
  for (std::size_t slot = 0; slot < tables_.size(); ++slot)
    for (std::size_t i = 0; i < tables_[slot].size(); ++i) {
      const std::int64_t page = 1 + static_cast<std::int64_t>(slot) * extent + static_cast<std::int64_t>(i);
      moves.from.push_back(tables_[slot][i]);
      moves.to.push_back(page);
      tables_[slot][i] = page;
      taken_[static_cast<std::size_t>(page)] = true;
    }
  extent_ = extent;
  first_maybe_ = 1;
  return moves;
}

PageMoves KeyValuePages::append_pages(std::int64_t pages) {
  PageMoves moves;
  moves.pages = pages;
  for (std::int64_t page = 1; page < this->pages(); ++page)
    if (taken_[static_cast<std::size_t>(page)]) moves.from.push_back(page);
  moves.to = moves.from;
  taken_.resize(static_cast<std::size_t>(pages), false);
  return moves;
}

std::optional<PageRun> KeyValuePages::run(const std::vector<std::int32_t>& slots, std::int64_t tokens) const {
  PageRun run;
  for (std::size_t row = 0; row < slots.size(); ++row) {
    if (slots[row] < 0 || of_slot(slots[row]).empty()) return {};
    const std::int64_t first = of_slot(slots[row]).front();
    if (row == 0) run.first = first;
    if (row == 1) run.stride = first - run.first;
    if (run.stride < 0 || first != run.first + static_cast<std::int64_t>(row) * run.stride) return {};
    const std::vector<std::int64_t>& table = of_slot(slots[row]);
    for (std::int64_t i = 0; i < pages_for(tokens); ++i) {
      const bool own = i < static_cast<std::int64_t>(table.size());
      if (own ? table[static_cast<std::size_t>(i)] != first + i : !is_free(first + i)) return {};
    }
  }
  return run;
}

}  // namespace replayeval
