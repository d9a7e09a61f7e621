// The memory of keys and values: a pool of pages for each attention layer of each arm (key_value_pages.h keeps the
// book).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "eval/model/key_value_pages.h"

namespace replayeval {

struct KeyValueCache {
  at::Tensor keys, values;  // pools: [kv_heads, pages * page_length, head_dim], compute dtype
};

struct KeyValueShape {  // of one attention layer
  std::int64_t kv_heads = 0, key_dim = 0, value_dim = 0;
  at::Device device = at::Device(at::kCPU);
};

// One page, of zeros. Pages that nobody holds are zeros always: rows behind the longest one read keys and values that
// nobody has written. Their weight is 0, and 0 times what other memory may hold, NaN, is NaN.
KeyValueCache make_pools(const KeyValueShape& shape, std::int64_t page_length, at::ScalarType compute_dtype);
void move_pages(KeyValueCache& pools, const PageMoves& moves, std::int64_t page_length);
void clear_pages(const KeyValueCache& pools, const std::vector<std::int64_t>& pages, std::int64_t page_length);

// Places in a pool, [tokens], of a slot's first tokens.
std::vector<std::int64_t> token_places(const KeyValuePages& pages, std::int64_t slot, std::int64_t tokens);
KeyValueCache read_tokens(const KeyValueCache& pools, const std::vector<std::int64_t>& places);  // copies
void copy_tokens(const KeyValueCache& to, const std::vector<std::int64_t>& places, const KeyValueCache& from,
                 const std::vector<std::int64_t>& from_places);

}  // namespace replayeval
