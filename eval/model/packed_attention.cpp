#include "eval/model/packed_attention.h"

#include <ATen/ATen.h>

#include <optional>
#include <tuple>

namespace replayeval {

bool attends_packed(const at::Tensor& q, const KeyValueCache& cache, const PagedRows& pages, const RowPlaces& places) {
  constexpr std::int64_t most_width = 256, width_step = 8;
  const std::int64_t width = cache.keys.size(2);
  const bool halves = q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf;
  return q.is_cuda() && halves && places.positions.size(1) > 1 && !pages.rounded() && cache.values.size(2) == width &&
         width <= most_width && width % width_step == 0;
}

at::Tensor attend_packed(const at::Tensor& q, const KeyValueCache& cache, const PagedRows& pages,
                         const RowPlaces& places, const AttentionSpan& span) {
  const std::int64_t rows = places.positions.size(0), tokens = places.positions.size(1);
  std::int64_t first = 0, stride = pages.keys();  // of the rows' keys, in tokens
  if (pages.run()) {
    first = pages.run()->first * pages.page_length();
    stride = pages.run()->stride * pages.page_length();
  }
  const auto packed = [&](const at::Tensor& pool) {  // [tokens, heads, dim]
    return pages.run() ? pool.transpose(0, 1) : pages.read(pool, pages.keys()).transpose(1, 2).flatten(0, 1);
  };
  const auto starts = [&](std::int64_t begin, std::int64_t step) {
    return at::arange(begin, begin + rows * step + 1, step, places.positions.options().dtype(at::kInt));
  };
  const at::Tensor lengths = places.positions.select(1, tokens - 1).add(1).to(at::kInt);
  std::optional<std::int64_t> earlier;  // tokens that a query sees before its own
  if (span.window) earlier = *span.window - 1;
  const auto result = at::_flash_attention_forward(
      q, packed(cache.keys), packed(cache.values), starts(0, tokens), starts(first, stride), tokens, pages.keys(),
      /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false, span.scale, earlier, std::nullopt, lengths);
  return std::get<0>(result).reshape({rows * tokens, -1});
}

}  // namespace replayeval
