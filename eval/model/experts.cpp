#include "eval/model/experts.h"

#include <ATen/ATen.h>

#include <vector>

#include "eval/model/layers.h"

namespace replayeval {
namespace {

// ATen's grouped product wants bfloat16 and rows that begin at multiples of 16 bytes, in and out.
bool fits_grouped(const at::Tensor& weight) {
  constexpr std::int64_t elements = 8;
  return weight.is_cuda() && weight.scalar_type() == at::kBFloat16 && weight.size(1) % elements == 0 &&
         weight.size(2) % elements == 0;
}

}  // namespace

bool run_grouped(const Experts& experts) { return fits_grouped(experts.up) && fits_grouped(experts.down); }

namespace {

// The pairs of a row and one of its experts, in the order of the experts.
struct SortedPairs {
  at::Tensor rows;   // [pairs] int64: the row that a pair is of
  at::Tensor place;  // [pairs] int64: where pair `row * chosen + i` stands
  at::Tensor ends;   // [experts] int32: behind the last pair of an expert
};

// experts: [rows, chosen].
SortedPairs sort_by_expert(const at::Tensor& experts, std::int64_t num_experts) {
  const auto [sorted, order] = at::sort(experts.flatten(), /*stable=*/true, 0, /*descending=*/false);
  SortedPairs pairs;
  pairs.rows = order.div(experts.size(1), "floor");
  pairs.place = at::empty_like(order).scatter_(0, order, at::arange(order.numel(), order.options()));
  const at::Tensor numbers = at::arange(num_experts, order.options());
  pairs.ends = at::searchsorted(sorted, numbers, /*out_int32=*/true, /*right=*/true);
  return pairs;
}

// x: [pairs, in] in the order of the experts, weight: [experts, out, in] -> [pairs, out].
at::Tensor grouped_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends) {
  return at::_grouped_mm(x, weight.transpose(1, 2), ends);
}

at::Tensor product_by_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends) {
  at::Tensor out = at::empty({x.size(0), weight.size(1)}, x.options());
  const auto* end = ends.const_data_ptr<std::int32_t>();
  for (std::int64_t expert = 0, begin = 0; expert < weight.size(0); begin = end[expert++]) {
    const std::int64_t rows = end[expert] - begin;
    if (rows == 0) continue;
    at::Tensor part = out.narrow(0, begin, rows);
    at::mm_out(part, x.narrow(0, begin, rows), weight.select(0, expert).t());
  }
  return out;
}

at::Tensor activate(const at::Tensor& inner, ExpertForm form) {
  if (form == ExpertForm::squared_relu) return squared_relu(inner);
  const std::int64_t half = inner.size(-1) / 2;
  return at::silu(inner.narrow(-1, 0, half)).mul_(inner.narrow(-1, half, half));
}

// x: [rows, in], chosen, weights: [rows, chosen] -> [rows, out].
at::Tensor run_rows(const at::Tensor& x, const at::Tensor& chosen, const at::Tensor& weights, const Experts& experts) {
  const SortedPairs pairs = sort_by_expert(chosen, experts.up.size(0));
  const bool grouped = run_grouped(experts);
  const at::Tensor ends = grouped ? pairs.ends : pairs.ends.cpu();
  const auto product = grouped ? &grouped_product : &product_by_product;
  const at::Tensor inner = activate(product(x.index_select(0, pairs.rows), experts.up, ends), experts.form);
  const at::Tensor outs = product(inner, experts.down, ends).index_select(0, pairs.place);
  return outs.view({x.size(0), chosen.size(1), outs.size(1)})
      .to(at::kFloat)
      .mul_(weights.unsqueeze(-1))
      .sum(1)
      .to(x.scalar_type());
}

}  // namespace

at::Tensor run_experts(const at::Tensor& x, const Routing& routing, const Experts& experts) {
  if (!x.is_cpu()) {
    const at::Tensor out =
        run_rows(x.flatten(0, 1), routing.experts.flatten(0, 1), routing.weights.flatten(0, 1), experts);
    return out.view({x.size(0), x.size(1), out.size(1)});
  }
  std::vector<at::Tensor> outs;  // arm by arm: see layers.h
  for (std::int64_t arm = 0; arm < x.size(0); ++arm)
    outs.push_back(run_rows(x.select(0, arm), routing.experts.select(0, arm), routing.weights.select(0, arm), experts));
  return at::stack(outs);
}

}  // namespace replayeval
