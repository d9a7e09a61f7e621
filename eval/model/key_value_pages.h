// Which pages hold the keys and values of which sequences (Kwon et al. 2023, "Efficient Memory Management for Large
// Language Model Serving with PagedAttention"). All attention layers of all arms hold the same tokens, so that one book
// serves them all: page p is page p of each layer's pool.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace replayeval {

inline std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

struct KeyValuePageOptions {
  std::int64_t page_length = 64;           // tokens
  std::optional<std::int64_t> limit = {};  // pages that all sequences may hold together; absent: what they need
};

// The limit is reached: nothing was taken.
class OutOfPages : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Pools become larger: page from[i] of the old ones is page to[i] of new ones, of `pages` pages, the rest zeros.
struct PageMoves {
  std::int64_t pages = 0;
  std::vector<std::int64_t> from, to;
};

// Rows whose pages stand one after the other, row b's from page first + b * stride on: readable without a copy.
struct PageRun {
  std::int64_t first = 0, stride = 1;
};

class KeyValuePages {
 public:
  // Page 0 belongs to nobody and holds zeros: what a row reads where it has no page. capacity: tokens of a slot, at
  // most. Throws std::invalid_argument on a page length or limit below 1.
  KeyValuePages(std::int64_t slots, std::int64_t capacity, const KeyValuePageOptions& options);

  std::int64_t page_length() const { return options_.page_length; }
  bool limited() const { return options_.limit.has_value(); }
  std::int64_t pages() const { return static_cast<std::int64_t>(taken_.size()); }  // of a pool, page 0 included
  std::int64_t held() const { return held_; }
  std::int64_t pages_for(std::int64_t tokens) const {
    return (tokens + options_.page_length - 1) / options_.page_length;
  }
  const std::vector<std::int64_t>& of_slot(std::int64_t slot) const { return tables_[static_cast<std::size_t>(slot)]; }

  // Gives each (slot, tokens) the pages that so many tokens need. Returns how pools must change first, if they must.
  // Throws OutOfPages.
  std::optional<PageMoves> reserve(const std::vector<std::pair<std::int64_t, std::int64_t>>& lengths);
  // Takes a slot's pages back but for its first `kept`. Returns them; the caller fills them with zeros.
  std::vector<std::int64_t> release(std::int64_t slot, std::int64_t kept = 0);
  void release_all();

  // Whether the rows' first `tokens` tokens can be read in place: behind a row's own pages nobody else's may stand.
  std::optional<PageRun> run(const std::vector<std::int32_t>& slots, std::int64_t tokens) const;

 private:
  std::optional<PageMoves> grow(std::int64_t more, std::int64_t longest);
  PageMoves spread_evenly(std::int64_t extent);
  PageMoves append_pages(std::int64_t pages);
  std::int64_t take(std::int64_t wanted);
  bool is_free(std::int64_t page) const { return page < pages() && !taken_[static_cast<std::size_t>(page)]; }

  KeyValuePageOptions options_;
  std::int64_t most_a_slot_;                       // pages
  std::vector<std::vector<std::int64_t>> tables_;  // by slot, in the order of its tokens
  std::vector<bool> taken_;                        // by page
  std::int64_t held_ = 0;
  std::int64_t extent_ = 0;       // slot s prefers pages 1 + s * extent .. (s + 1) * extent; 0: any
  std::int64_t first_maybe_ = 1;  // no page before it is free
};

}  // namespace replayeval
