#include "eval/model/layers.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "eval/model/packed_attention.h"

#ifdef REPLAYEVAL_WITH_CUDA
#include "eval/executors/device.h"
#include "eval/executors/tensor_memory.h"
#include "eval/model/row_kernels_cuda.h"
#endif

namespace replayeval {
namespace {

#ifdef REPLAYEVAL_WITH_CUDA

// One kernel each, in the same float32 arithmetic. addend: of x's shape and type, or undefined; `sum` becomes x +
// addend.
at::Tensor rms_norm_on_gpu(const at::Tensor& x, const at::Tensor& addend, at::Tensor& sum, const Norm& norm,
                           at::ScalarType type) {
  const c10::DeviceGuard current(x.device());
  const at::Tensor dense = x.contiguous();
  at::Tensor out = at::empty(x.sizes(), x.options().dtype(type));
  at::Tensor more;
  RmsNormRows rows;
  if (addend.defined()) {
    more = addend.contiguous();
    sum = at::empty(x.sizes(), x.options());
    rows.addend = more.const_data_ptr();
    rows.sum = sum.data_ptr();
  }
  rows.x = dense.const_data_ptr();
  rows.weight = floats(norm.weight);
  rows.out = out.data_ptr();
  rows.width = norm.weight.size(0);
  rows.rows = x.numel() / rows.width;
  rows.eps = static_cast<float>(norm.eps);
  rows.in = kernel_dtype(x.scalar_type());
  rows.out_dtype = kernel_dtype(type);
  rms_norm_rows(kernel_device(x.device()).stream, rows);
  return out;
}

at::Tensor squared_relu_on_gpu(const at::Tensor& x) {
  const c10::DeviceGuard current(x.device());
  const at::Tensor dense = x.contiguous();
  at::Tensor out = at::empty_like(dense);
  squared_relu_elements(kernel_device(x.device()).stream, dense.const_data_ptr(), out.data_ptr(), x.numel(),
                        kernel_dtype(x.scalar_type()));
  return out;
}

#else

at::Tensor rms_norm_on_gpu(const at::Tensor& /*x*/, const at::Tensor& /*addend*/, at::Tensor& /*sum*/,
                           const Norm& /*norm*/, at::ScalarType /*type*/) {
  return {};
}
at::Tensor squared_relu_on_gpu(const at::Tensor& /*x*/) { return {}; }

#endif

// Queries of one attention call: keeps the mask, [queries, keys], small however long a block is.
constexpr std::int64_t most_queries = 256;

// The tensor, at an address that all arms' tensors share the alignment of: that of a fresh allocation.
at::Tensor aligned(const at::Tensor& x) {
  constexpr std::uintptr_t alignment = 64;
  const at::Tensor dense = x.contiguous();
  const bool fresh = !x.is_cpu() || reinterpret_cast<std::uintptr_t>(dense.const_data_ptr()) % alignment == 0;
  return fresh ? dense : dense.clone();
}

// True where a query at `positions`, [B or 1, Q], may see key column c: [B or 1, 1, Q, keys].
at::Tensor causal_mask(const at::Tensor& positions, std::int64_t keys, const std::optional<std::int64_t>& window) {
  const at::Tensor rows = positions.unsqueeze(1).unsqueeze(-1);
  const at::Tensor columns = at::arange(keys, positions.options());
  const at::Tensor seen = columns.le(rows);
  return window ? seen.logical_and(columns.gt(rows.sub(*window))) : seen;
}

// What is added to scores: 0 where `seen`, else minus infinity.
at::Tensor as_bias(const at::Tensor& seen, at::ScalarType type) {
  return at::zeros(seen.sizes(), seen.options().dtype(type))
      .masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const Linear& layer) {
  std::vector<std::int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.back() = layer.weight.size(0);
  at::Tensor out = at::empty(shape, x.options());
  const std::int64_t parts = x.is_cpu() ? x.size(0) : 1;
  const at::Tensor in = x.reshape({parts, -1, x.size(-1)});
  const at::Tensor rows = out.view({parts, -1, shape.back()});
  for (std::int64_t part = 0; part < parts; ++part) {
    at::Tensor product = rows.select(0, part);
    if (layer.bias.defined())
      at::addmm_out(product, layer.bias, aligned(in.select(0, part)), layer.weight.t());
    else
      at::mm_out(product, aligned(in.select(0, part)), layer.weight.t());
  }
  return out;
}

at::Tensor per_arm(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f) {
  if (!x.is_cpu()) return f(x);
  std::vector<at::Tensor> parts;
  for (std::int64_t arm = 0; arm < x.size(0); ++arm) parts.push_back(f(x.select(0, arm)));
  return at::stack(parts);
}

at::Tensor rms_norm(const at::Tensor& x, const Norm& norm, at::ScalarType type) {
  at::Tensor sum;
  if (!x.is_cpu()) return rms_norm_on_gpu(x, {}, sum, norm, type);
  return per_arm(x, [&](const at::Tensor& part) {
    const at::Tensor wide = part.to(at::kFloat);
    const at::Tensor scale = wide.square().mean(-1, /*keepdim=*/true).add_(norm.eps).rsqrt_();
    return wide.mul(scale).mul_(norm.weight).to(type);
  });
}

at::Tensor squared_relu(const at::Tensor& x) {
  if (!x.is_cpu()) return squared_relu_on_gpu(x);
  return per_arm(x, [](const at::Tensor& part) { return at::relu(part).square_(); });
}

at::Tensor multiply(const at::Tensor& x, double factor) {
  return per_arm(x, [factor](const at::Tensor& part) { return part.mul(factor); });
}

at::Tensor multiply_by(const at::Tensor& x, const at::Tensor& factor) {
  if (!x.is_cpu()) return x.mul(factor);
  std::vector<at::Tensor> parts;
  for (std::int64_t arm = 0; arm < x.size(0); ++arm) parts.push_back(x.select(0, arm).mul(factor.select(0, arm)));
  return at::stack(parts);
}

at::Tensor add_residual(const at::Tensor& residual, const at::Tensor& x) {
  if (!x.is_cpu()) return residual.add(x);
  at::Tensor sum = at::empty_like(residual);
  for (std::int64_t arm = 0; arm < x.size(0); ++arm) {
    at::Tensor part = sum.select(0, arm);
    part.copy_(residual.select(0, arm)).add_(x.select(0, arm));
  }
  return sum;
}

at::Tensor whole(const ResidualStream& stream) {
  return stream.addend.defined() ? add_residual(stream.sum, stream.addend) : stream.sum;
}

at::Tensor add_and_norm(ResidualStream& stream, const Norm& norm, at::ScalarType type) {
  const at::Tensor residual = stream.sum, addend = stream.addend;
  stream.addend = at::Tensor();
  if (!residual.is_cpu() && addend.defined() && residual.scalar_type() == type && addend.scalar_type() == type)
    return rms_norm_on_gpu(residual, addend, stream.sum, norm, type);
  stream.sum = whole({residual, addend});
  return rms_norm(stream.sum.to(type), norm, type);
}

void append(const KeyValueCache& cache, const at::Tensor& keys, const at::Tensor& values, const PagedRows& pages,
            const RowPlaces& places) {
  const std::int64_t batch = places.positions.size(0), tokens = places.positions.size(1);
  for (const auto& [pool, fresh] : {std::pair(cache.keys, keys), std::pair(cache.values, values)})
    pages.write(pool, fresh.reshape({batch, tokens, pool.size(0), pool.size(2)}), places);
}

at::Tensor attend(const at::Tensor& q, const KeyValueCache& cache, const PagedRows& pages, const RowSlots& rows,
                  const RowPlaces& places, const AttentionSpan& span) {
  if (attends_packed(q, cache, pages, places)) return attend_packed(q, cache, pages, places, span);
  const std::int64_t batch = places.positions.size(0), tokens = places.positions.size(1);
  const std::int64_t kv_heads = cache.keys.size(0), key_dim = cache.keys.size(2), value_dim = cache.values.size(2);
  const std::int64_t group = q.size(1) / kv_heads;
  const at::Tensor heads = q.reshape({batch, tokens, kv_heads, group, key_dim}).permute({0, 2, 3, 1, 4});
  const double scale = span.scale.value_or(1.0 / std::sqrt(static_cast<double>(key_dim)));
  const at::Tensor all_keys = pages.read(cache.keys, pages.keys());
  const at::Tensor all_values = pages.read(cache.values, pages.keys());
  // Aligned rows have one mask.
  const at::Tensor positions = rows.aligned() ? places.positions.narrow(0, 0, 1) : places.positions;
  std::vector<at::Tensor> outputs;
  for (std::int64_t begin = 0; begin < tokens; begin += most_queries) {
    const std::int64_t queries = std::min(most_queries, tokens - begin);
    const std::int64_t keys = pages.rounded() ? pages.keys() : rows.longest() + begin + queries;
    // The query heads that share a key head become more query rows of it, so that nothing is repeated in memory.
    const at::Tensor query_rows =
        aligned(heads.narrow(3, begin, queries).reshape({batch, kv_heads, group * queries, key_dim}));
    const auto make_mask = [&] {
      const at::Tensor seen =
          causal_mask(positions.narrow(1, begin, queries), keys, span.window).repeat({1, 1, group, 1});
      return rows.aligned() ? seen.squeeze(0).squeeze(0) : seen;
    };
    std::optional<at::Tensor> mask;
    if (pages.rounded())
      mask = pages.mask({q.device(), q.scalar_type(), group, span.window},
                        [&] { return as_bias(make_mask(), q.scalar_type()); });
    else if (queries > 1 || span.window || !rows.aligned())
      mask = make_mask();
    const at::Tensor out = at::scaled_dot_product_attention(query_rows, all_keys.narrow(2, 0, keys),
                                                            all_values.narrow(2, 0, keys), mask, 0.0, false, scale);
    outputs.push_back(out.view({batch, kv_heads, group, queries, value_dim}).permute({0, 3, 1, 2, 4}));
  }
  return (outputs.size() == 1 ? outputs[0] : at::cat(outputs, 1))
      .reshape({batch * tokens, kv_heads * group * value_dim});
}

}  // namespace replayeval
