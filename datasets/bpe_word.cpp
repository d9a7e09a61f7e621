#include "datasets/bpe_word.h"

#include <algorithm>

namespace replayeval::datasets {

void BpeWord::add(std::int32_t token) {
  const auto place = static_cast<std::int32_t>(symbols_.size());
  if (place > 0) symbols_.back().next = place;
  symbols_.push_back({.token = token, .previous = place - 1, .next = -1});
}

void BpeWord::consider(const MergeTable& merges, std::int32_t left) {
  const std::int32_t right = left < 0 ? -1 : symbols_[static_cast<std::size_t>(left)].next;
  if (right < 0) return;
  const Merge merge =
      merges.find(symbols_[static_cast<std::size_t>(left)].token, symbols_[static_cast<std::size_t>(right)].token);
  if (merge.token >= 0) candidates_.push_back({.merge = merge, .left = left});
}

void BpeWord::join(std::int32_t left, std::int32_t token) {
  Symbol& first = symbols_[static_cast<std::size_t>(left)];
  Symbol& second = symbols_[static_cast<std::size_t>(first.next)];
  first.token = token;
  first.next = second.next;
  second.token = -1;
  if (first.next >= 0) symbols_[static_cast<std::size_t>(first.next)].previous = left;
}

void BpeWord::merge_all(const MergeTable& merges) {
  candidates_.clear();
  for (std::int32_t left = 0; left + 1 < static_cast<std::int32_t>(symbols_.size()); ++left) consider(merges, left);
  std::make_heap(candidates_.begin(), candidates_.end());
  const auto push = [&](std::int32_t left) {
    const std::size_t before = candidates_.size();
    consider(merges, left);
    if (candidates_.size() > before) std::push_heap(candidates_.begin(), candidates_.end());
  };
  while (!candidates_.empty()) {
    std::pop_heap(candidates_.begin(), candidates_.end());
    const Candidate best = candidates_.back();
    candidates_.pop_back();
    const Symbol left = symbols_[static_cast<std::size_t>(best.left)];
    if (left.token < 0 || left.next < 0) continue;
    // Out of date if its neighbours have changed since. As in the tokenizers library, a pair that has come to be
    // another one with the same outcome merges at the rank of the old one.
    const Merge now = merges.find(left.token, symbols_[static_cast<std::size_t>(left.next)].token);
    if (now.token != best.merge.token) continue;
    join(best.left, best.merge.token);
    push(left.previous);
    push(best.left);
  }
}

void BpeWord::append_to(std::vector<std::int32_t>& ids) const {
  for (const Symbol& symbol : symbols_) {
    if (symbol.token >= 0) ids.push_back(symbol.token);
  }
}

}  // namespace replayeval::datasets
