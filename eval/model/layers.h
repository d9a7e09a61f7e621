// The dense parts of a hybrid model on hidden states stacked over arms, [arms, rows, width].
//
// Two identical arms must agree to the bit. On CUDA a row's result does not depend on where it stands, so that one call
// serves all stacked rows. On the CPU it does: the vectorised tails of ATen's elementwise loops round differently at
// different places, and MKL's float32 products, for few rows, treat the last rows of a matrix unlike the first (5, 6,
// 7, 9, 10 and 11 rows on two threads) and look at the alignment of their input. There everything runs arm by arm, on
// equal shapes and equally aligned.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "eval/model/hybrid_cache.h"

namespace replayeval {

struct Linear {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out], or undefined
};

// x: [arms, ..., in] -> [arms, ..., out]
at::Tensor linear(const at::Tensor& x, const Linear& layer);

// x: [arms, ...] -> the stacked results of f on each arm's part; f must keep the leading sizes of what it is given.
at::Tensor per_arm(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f);

struct Norm {
  at::Tensor weight;  // [width] float32
  double eps = 1e-5;
};

// Normalised and multiplied with the weight in float32, rounded once, to `type` (as the published code does).
at::Tensor rms_norm(const at::Tensor& x, const Norm& norm, at::ScalarType type);

at::Tensor squared_relu(const at::Tensor& x);

at::Tensor multiply(const at::Tensor& x, double factor);
at::Tensor multiply_by(const at::Tensor& x, const at::Tensor& factor);  // [arms, ...] both, broadcast

// residual + x, in residual's type.
at::Tensor add_residual(const at::Tensor& residual, const at::Tensor& x);

// The residual stream between two layers. The norm that comes next adds on its way what the last layer returned.
struct ResidualStream {
  at::Tensor sum;     // [arms, rows, hidden]
  at::Tensor addend;  // to be added to it, in its type; undefined: nothing
};

// The stream with everything added.
at::Tensor whole(const ResidualStream& stream);
// Adds what is to be added and returns rms_norm() of the sum, which is rounded to `type` before.
at::Tensor add_and_norm(ResidualStream& stream, const Norm& norm, at::ScalarType type);

// Writes one arm's new keys [B * T, kv_heads, key_dim] and values [B * T, kv_heads * value_dim]; none of padded rows.
void append(const KeyValueCache& cache, const at::Tensor& keys, const at::Tensor& values, const PagedRows& pages,
            const RowPlaces& places);

struct AttentionSpan {
  std::optional<double> scale;         // of the scores; key_dim^-1/2 if absent
  std::optional<std::int64_t> window;  // how many tokens one sees, itself included; all if absent
};

// Causal grouped-query attention of one arm's newest T tokens, which append() has put into the cache.
// q: [B * T, heads, key_dim] -> [B * T, heads * value_dim].
at::Tensor attend(const at::Tensor& q, const KeyValueCache& cache, const PagedRows& pages, const RowSlots& rows,
                  const RowPlaces& places, const AttentionSpan& span);

}  // namespace replayeval
