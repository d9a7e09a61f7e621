#include "eval/model/key_value_pools.h"

#include <ATen/ATen.h>

namespace replayeval {
namespace {

at::Tensor index_on(const at::Device& device, const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong).to(device);
}

at::Tensor by_page(const at::Tensor& pool, std::int64_t page_length) {
  return pool.view({pool.size(0), -1, page_length * pool.size(2)});
}

at::Tensor moved(const at::Tensor& pool, const PageMoves& moves, std::int64_t page_length) {
  at::Tensor larger = at::zeros({pool.size(0), moves.pages * page_length, pool.size(2)}, pool.options());
  if (moves.from.empty()) return larger;
  const at::Tensor kept = by_page(pool, page_length).index_select(1, index_on(pool.device(), moves.from));
  by_page(larger, page_length).index_copy_(1, index_on(pool.device(), moves.to), kept);
  return larger;
}

}  // namespace

KeyValueCache make_pools(const KeyValueShape& shape, std::int64_t page_length, at::ScalarType compute_dtype) {
  const auto options = at::TensorOptions().device(shape.device).dtype(compute_dtype);
  return {at::zeros({shape.kv_heads, page_length, shape.key_dim}, options),
          at::zeros({shape.kv_heads, page_length, shape.value_dim}, options)};
}

void move_pages(KeyValueCache& pools, const PageMoves& moves, std::int64_t page_length) {
  pools.keys = moved(pools.keys, moves, page_length);
  pools.values = moved(pools.values, moves, page_length);
}

void clear_pages(const KeyValueCache& pools, const std::vector<std::int64_t>& pages, std::int64_t page_length) {
  if (pages.empty()) return;
  const at::Tensor index = index_on(pools.keys.device(), pages);
  by_page(pools.keys, page_length).index_fill_(1, index, 0.0);
  by_page(pools.values, page_length).index_fill_(1, index, 0.0);
}

std::vector<std::int64_t> token_places(const KeyValuePages& pages, std::int64_t slot, std::int64_t tokens) {
  const std::vector<std::int64_t>& own = pages.of_slot(slot);
  std::vector<std::int64_t> places;
  for (std::int64_t token = 0; token < tokens; ++token)
    places.push_back(own[static_cast<std::size_t>(token / pages.page_length())] * pages.page_length() +
                     token % pages.page_length());
  return places;
}

KeyValueCache read_tokens(const KeyValueCache& pools, const std::vector<std::int64_t>& places) {
  const at::Tensor index = index_on(pools.keys.device(), places);
  return {pools.keys.index_select(1, index), pools.values.index_select(1, index)};
}

void copy_tokens(const KeyValueCache& to, const std::vector<std::int64_t>& places, const KeyValueCache& from,
                 const std::vector<std::int64_t>& from_places) {
  const KeyValueCache tokens = read_tokens(from, from_places);
  const at::Tensor index = index_on(to.keys.device(), places);
  to.keys.index_copy_(1, index, tokens.keys);
  to.values.index_copy_(1, index, tokens.values);
}

}  // namespace replayeval
