#include "eval/model/hybrid_model.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "eval/executors/device.h"
#include "eval/model/token_ids.h"

namespace replayeval {
namespace {

ResidualStream moved(const ResidualStream& stream, const at::Device& device) {
  return {stream.sum.to(device), stream.addend.defined() ? stream.addend.to(device) : at::Tensor()};
}

class HybridModel : public Model {
 public:
  HybridModel(HybridParts parts, const ModelOptions& options)
      : parts_(std::move(parts)), options_(options), compute_(scalar_type(options.compute_dtype)) {}

  const std::string& model_type() const override { return parts_.architecture.model_type; }
  std::int64_t vocab_size() const override { return parts_.architecture.vocab_size; }
  std::int64_t hidden_size() const override { return parts_.architecture.hidden_size; }
  std::int64_t max_positions() const override { return parts_.architecture.max_positions; }
  std::int64_t parameter_count() const override { return parts_.totals.parameters; }
  const WeightTotals& weight_totals() const override { return parts_.totals; }
  const ModelOptions& options() const override { return options_; }
  const std::vector<std::shared_ptr<const Mixer>>& mixers() const override { return parts_.mixers; }
  const std::vector<std::int64_t>& mixer_layers() const override { return parts_.mixer_layers; }

  std::unique_ptr<DecodeCache> make_cache(const std::vector<Arm>& arms, std::int64_t slots, std::int64_t capacity,
                                          const KeyValuePageOptions& pages) const override {
    return std::make_unique<HybridCache>(arms, parts_.mixers, parts_.attention, compute_, slots, capacity, pages,
                                         graph_obstacle());
  }
  at::Tensor forward(const at::Tensor& ids, DecodeCache& cache, Mode mode, KernelClock* clock, MixerTap* tap,
                     const std::vector<std::int32_t>& slots) const override;
  at::Tensor logits(const at::Tensor& hidden) const override;

 private:
  at::Tensor embed(const at::Tensor& ids, std::int64_t arms) const;
  at::Tensor run_block(const at::Tensor& ids, HybridCache& cache, const RowSlots& rows, const PagedRows& pages,
                       KernelClock* clock, MixerTap* tap) const;
  at::Tensor run_call(const at::Tensor& ids, HybridCache& cache, const RowSlots& rows, Mode mode, KernelClock* clock,
                      MixerTap* tap) const;
  std::string graph_obstacle() const;

  HybridParts parts_;
  ModelOptions options_;
  at::ScalarType compute_;
};

at::Tensor HybridModel::forward(const at::Tensor& ids, DecodeCache& cache, Mode mode, KernelClock* clock, MixerTap* tap,
                                const std::vector<std::int32_t>& slots) const {
  const c10::NoGradGuard no_gradients;
  auto& hybrid = dynamic_cast<HybridCache&>(cache);
  const RowSlots rows = hybrid.rows(slots);
  check_token_ids(ids, vocab_size(), rows, hybrid.num_arms(), hybrid.capacity());
  const at::Tensor there = ids.to(parts_.embeddings.device());
  if (mode == Mode::teacher_forced || ids.size(-1) == 1) return run_call(there, hybrid, rows, mode, clock, tap);
  std::vector<at::Tensor> steps;
  for (std::int64_t t = 0; t < ids.size(-1); ++t)
    steps.push_back(run_call(there.narrow(-1, t, 1), hybrid, hybrid.rows(slots), mode, clock, tap));
  return at::cat(steps, 2);
}

at::Tensor HybridModel::embed(const at::Tensor& ids, std::int64_t arms) const {
  const bool shared = ids.dim() == 2;
  at::Tensor found = at::embedding(parts_.embeddings, shared ? ids.reshape({1, -1}) : ids.flatten(1));
  if (parts_.embedding_multiplier != 1.0) found = multiply(found, parts_.embedding_multiplier);
  return shared ? found.repeat({arms, 1, 1}) : found;
}

std::string HybridModel::graph_obstacle() const {
  if (options_.device == DeviceKind::cpu) return "on the CPU";
  if (!options_.graphs) return "switched off";
  if (parts_.final_norm.weight.device() != parts_.embeddings.device()) return "layers on several GPUs";
  for (const PlacedLayer& placed : parts_.layers) {
    if (placed.device != parts_.embeddings.device()) return "layers on several GPUs";
    if (std::string obstacle = placed.layer->graph_obstacle(); !obstacle.empty()) return obstacle;
  }
  return "";
}

at::Tensor HybridModel::run_call(const at::Tensor& ids, HybridCache& cache, const RowSlots& rows, Mode mode,
                                 KernelClock* clock, MixerTap* tap) const {
  const PagedRows pages = cache.reserve(rows, ids.size(-1));
  const auto body = [&](const at::Tensor& tokens, const RowSlots& at, const PagedRows& paged, KernelClock* timing) {
    return run_block(tokens, cache, at, paged, timing, tap);
  };
  const bool captured = mode == Mode::stepwise && tap == nullptr && cache.graphs() != nullptr;
  const at::Tensor hidden =
      captured ? cache.graphs()->run(ids, rows, pages, ids.device(), clock, body) : body(ids, rows, pages, clock);
  cache.advance_positions(rows, ids.size(-1));
  return hidden;
}

// All that the devices do; what the host knows of the cache stays as it is.
at::Tensor HybridModel::run_block(const at::Tensor& ids, HybridCache& cache, const RowSlots& rows,
                                  const PagedRows& pages, KernelClock* clock, MixerTap* tap) const {
  Step step{cache, rows, pages, ids.size(-2), ids.size(-1), clock, tap, {}};
  {
    const KernelClock::Scope scope(clock, "", "embedding");
    step.embeddings = embed(ids, cache.num_arms());
  }
  ResidualStream stream{step.embeddings, {}};
  for (const PlacedLayer& placed : parts_.layers) {
    const c10::DeviceGuard current(placed.device);
    stream = placed.layer->run(moved(stream, placed.device), step);
  }
  cache.advance_cursors(rows, step.tokens);
  const KernelClock::Scope scope(clock, "", "norm");
  stream = moved(stream, parts_.final_norm.weight.device());
  return add_and_norm(stream, parts_.final_norm, compute_)
      .view({cache.num_arms(), step.batch, step.tokens, hidden_size()});
}

// Float32 sums of exact products, never rounded to the compute dtype. On CUDA 16-bit operands give float32 results in
// one product; ATen has no such product on the CPU, where the head is therefore kept in float32.
at::Tensor HybridModel::logits(const at::Tensor& hidden) const {
  const c10::NoGradGuard no_gradients;
  const at::Tensor& head = parts_.head;
  if (hidden.size(-1) != hidden_size())
    throw std::invalid_argument("hidden: last size " + std::to_string(hidden.size(-1)) + "; expected " +
                                std::to_string(hidden_size()));
  at::Tensor scores;
  if (head.scalar_type() == at::kFloat) {
    const at::Tensor wide = hidden.to(at::kFloat);
    // The first of several indices is the arm: see layers.h.
    scores = hidden.dim() > 2 ? linear(wide, {head, {}}) : linear(wide.unsqueeze(0), {head, {}}).squeeze(0);
  } else {
    std::vector<std::int64_t> shape(hidden.sizes().begin(), hidden.sizes().end());
    shape.back() = vocab_size();
    scores = at::mm(hidden.reshape({-1, hidden_size()}), head.t(), at::kFloat).view(shape);
  }
  return parts_.logits_multiplier == 1.0 ? scores : scores.mul_(parts_.logits_multiplier);
}

}  // namespace

std::unique_ptr<Model> make_hybrid_model(HybridParts parts, const ModelOptions& options) {
  return std::make_unique<HybridModel>(std::move(parts), options);
}

}  // namespace replayeval
