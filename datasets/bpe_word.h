// The tokens of one word while they merge.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "datasets/merge_table.h"

namespace replayeval::datasets {

// A doubly linked list in an array, and a heap of the merges that its neighbours allow. Reused from word to word.
class BpeWord {
 public:
  void clear() { symbols_.clear(); }
  void add(std::int32_t token);
  // Merges until no neighbours do: always the lowest rank, the leftmost of equals. Time n log n.
  void merge_all(const MergeTable& merges);
  void append_to(std::vector<std::int32_t>& ids) const;

 private:
  struct Symbol {
    std::int32_t token = -1;  // -1: merged into the one before it
    std::int32_t previous = -1, next = -1;
  };
  struct Candidate {
    Merge merge;
    std::int32_t left = 0;                          // place of the pair's first symbol
    bool operator<(const Candidate& other) const {  // std::priority_queue's top is the largest
      return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : left > other.left;
    }
  };

  void consider(const MergeTable& merges, std::int32_t left);
  void join(std::int32_t left, std::int32_t token);

  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // a heap
};

}  // namespace replayeval::datasets
