#include "eval/model/router.h"

#include <ATen/ATen.h>

#include <limits>
#include <vector>

#include "eval/model/layers.h"

namespace replayeval {
namespace {

struct RowRouting {
  at::Tensor experts, weights;  // as of Routing, without the arms
};

// What the choice is made by, [rows, experts], with the experts of groups that are out at minus infinity.
at::Tensor without_poor_groups(const at::Tensor& ranks, const RouterForm& form) {
  if (form.groups_chosen == form.groups) return ranks;
  const std::int64_t rows = ranks.size(0), size = ranks.size(1) / form.groups;
  const at::Tensor grouped = ranks.view({rows, form.groups, size});
  const at::Tensor group_ranks = std::get<0>(grouped.topk(std::min<std::int64_t>(2, size), -1)).sum(-1);
  const at::Tensor best = std::get<1>(group_ranks.topk(form.groups_chosen, -1));
  const at::Tensor in = at::zeros(group_ranks.sizes(), group_ranks.options().dtype(at::kBool)).scatter_(1, best, true);
  return grouped.masked_fill(in.logical_not().unsqueeze(-1), -std::numeric_limits<double>::infinity())
      .view({rows, form.groups * size});
}

// logits: [rows, experts] float32.
RowRouting choose(const at::Tensor& logits, const Router& router) {
  const RouterForm& form = router.form;
  at::Tensor scores = logits;
  if (form.scores == RouterScores::sigmoid) scores = logits.sigmoid();
  if (form.scores == RouterScores::softmax_of_all) scores = logits.softmax(-1);
  const at::Tensor ranks = router.correction_bias.defined() ? scores.add(router.correction_bias) : scores;
  const at::Tensor experts = std::get<1>(without_poor_groups(ranks, form).topk(form.chosen, -1));
  at::Tensor weights = scores.gather(-1, experts);
  if (form.scores == RouterScores::softmax_of_chosen) weights = weights.softmax(-1);
  // A sum of sigmoids may underflow to zero; to others 1e-20 adds nothing.
  if (form.renormalise) weights = weights.div(weights.sum(-1, /*keepdim=*/true).add(1e-20));
  return {experts, form.scale == 1.0 ? weights : weights.mul(form.scale)};
}

}  // namespace

Routing route(const at::Tensor& x, const Router& router) {
  const at::Tensor logits = linear(x.to(router.weight.scalar_type()), {router.weight, {}}).to(at::kFloat);
  if (!x.is_cpu()) {
    const RowRouting all = choose(logits.flatten(0, 1), router);
    const std::vector<std::int64_t> shape = {x.size(0), x.size(1), router.form.chosen};
    return {all.experts.view(shape), all.weights.view(shape)};
  }
  std::vector<at::Tensor> experts, weights;  // arm by arm: see layers.h
  for (std::int64_t arm = 0; arm < x.size(0); ++arm) {
    const RowRouting one = choose(logits.select(0, arm), router);
    experts.push_back(one.experts);
    weights.push_back(one.weights);
  }
  return {at::stack(experts), at::stack(weights)};
}

}  // namespace replayeval
