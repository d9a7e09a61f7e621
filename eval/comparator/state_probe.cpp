#include "eval/comparator/state_probe.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "eval/executors/device.h"
#include "eval/metrics/state_error.h"

namespace replayeval {
namespace {

// One arm's side run of one mixer: caches of its own, and what they hold after the newest segment.
struct SideRun {
  MixerCache cache;
  at::Tensor state, y, conv;  // float32 on the CPU [heads, rows, columns] and [heads, rows]; conv as the mixer made it

  void decode(const Mixer& mixer, const Arm& arm, const at::Tensor& projected) {
    const MixerResult result = mixer.run(arm, cache, projected);
    advance_cursor(arm, cache.cursor, 1, projected.size(1));
    state = mixer.present_state(arm, cache, 1).select(0, 0).to(at::kCPU, at::kFloat).contiguous();
    y = result.y.select(0, 0).select(0, -1).to(at::kCPU, at::kFloat).contiguous();
    conv = result.conv;
  }
};

std::span<const float> floats(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

struct Errors {
  metrics::StateErrorAccumulator state, output;
};

using Key = std::tuple<std::size_t, ErrorDepth, std::size_t, std::int64_t>;  // arm, depth, mixer, position

}  // namespace

class StateProbe::Impl final : public MixerTap {
 public:
  Impl(const Model& model, std::vector<Arm> arms, std::size_t baseline, std::vector<std::int64_t> positions,
       std::vector<ErrorDepth> depths)
      : model_(model),
        arms_(std::move(arms)),
        baseline_(baseline),
        positions_(std::move(positions)),
        depths_(std::move(depths)),
        cache_(model.make_cache(arms_, 1, positions_.back())) {}

  void add(const at::Tensor& ids) {
    cache_->reset();
    start_side_runs();
    std::int64_t begin = 0;
    for (const std::int64_t end : positions_) {  // segments end at the positions, so that states are looked at there
      position_ = end;
      model_.forward(ids.narrow(1, begin, end - begin), *cache_, Mode::teacher_forced, nullptr, this);
      begin = end;
    }
  }

  void on_mixer(std::int64_t mixer, std::size_t arm, const at::Tensor& projected) override {
    segment_.resize(arms_.size());
    segment_[arm] = projected;
    if (arm + 1 == arms_.size()) compare(static_cast<std::size_t>(mixer));
  }

  std::vector<reports::StateError> rows() const;

 private:
  struct MixerRuns {
    std::vector<SideRun> own, on_baseline;  // by arm
    // By arm; null while the arm has seen just what the baseline saw.
    std::vector<std::unique_ptr<GoldRecurrence>> gold;
  };

  bool measures(ErrorDepth depth) const { return std::find(depths_.begin(), depths_.end(), depth) != depths_.end(); }
  void start_side_runs();
  void compare(std::size_t mixer);
  void run_gold(std::size_t mixer);
  template <typename T>
  void record(std::size_t arm, ErrorDepth depth, std::size_t mixer, const SideRun& run, std::span<const T> state,
              std::span<const T> output);

  const Model& model_;
  std::vector<Arm> arms_;
  std::size_t baseline_;
  std::vector<std::int64_t> positions_;
  std::vector<ErrorDepth> depths_;
  std::unique_ptr<DecodeCache> cache_;
  std::vector<MixerRuns> runs_;
  std::vector<at::Tensor> segment_;  // the mixer's input under each arm
  std::int64_t position_ = 0;
  std::map<Key, Errors> errors_;
};

void StateProbe::Impl::start_side_runs() {
  runs_.clear();
  const at::ScalarType dtype = scalar_type(model_.options().compute_dtype);
  for (const auto& mixer : model_.mixers()) {
    MixerRuns& runs = runs_.emplace_back();
    for (const Arm& arm : arms_) {
      runs.own.push_back({mixer->make_cache(arm, 1, dtype), {}, {}, {}});
      runs.on_baseline.push_back({mixer->make_cache(arm, 1, dtype), {}, {}, {}});
    }
    runs.gold.resize(arms_.size());
    runs.gold[baseline_] = mixer->gold();
  }
}

void StateProbe::Impl::compare(std::size_t mixer) {
  MixerRuns& runs = runs_[mixer];
  const Mixer& layer = *model_.mixers()[mixer];
  for (std::size_t arm = 0; arm < arms_.size(); ++arm) runs.own[arm].decode(layer, arms_[arm], segment_[arm]);
  const SideRun& truth = runs.own[baseline_];
  for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
    if (measures(ErrorDepth::propagated)) {
      record(arm, ErrorDepth::propagated, mixer, runs.own[arm], floats(truth.state), floats(truth.y));
    }
    if (measures(ErrorDepth::local)) {
      runs.on_baseline[arm].decode(layer, arms_[arm], segment_[baseline_]);
      record(arm, ErrorDepth::local, mixer, runs.on_baseline[arm], floats(truth.state), floats(truth.y));
    }
  }
  if (measures(ErrorDepth::gold)) run_gold(mixer);
  segment_.clear();
}

// An arm that has seen bit for bit what the baseline saw shares the baseline's recurrence; it gets a copy of its own at
// the first difference. In the first layer, and for an A/A arm everywhere, that spares most of the float64 work.
void StateProbe::Impl::run_gold(std::size_t mixer) {
  MixerRuns& runs = runs_[mixer];
  for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
    if (!runs.gold[arm] && !at::equal(segment_[arm], segment_[baseline_]))
      runs.gold[arm] = runs.gold[baseline_]->clone();
  }
  at::parallel_for(0, static_cast<std::int64_t>(arms_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto arm = static_cast<std::size_t>(begin); arm < static_cast<std::size_t>(end); ++arm) {
      if (runs.gold[arm]) runs.gold[arm]->decode(runs.own[arm].conv, segment_[arm]);
    }
  });
  for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
    const GoldRecurrence& gold = runs.gold[arm] ? *runs.gold[arm] : *runs.gold[baseline_];
    const std::vector<double> state = gold.state();
    record<double>(arm, ErrorDepth::gold, mixer, runs.own[arm], state, gold.last_output());
  }
}

template <typename T>
void StateProbe::Impl::record(std::size_t arm, ErrorDepth depth, std::size_t mixer, const SideRun& run,
                              std::span<const T> state, std::span<const T> output) {
  const MixerSizes& sizes = model_.mixers()[mixer]->sizes();
  const auto [entry, fresh] = errors_.try_emplace(
      Key{arm, depth, mixer, position_},
      Errors{metrics::StateErrorAccumulator(sizes.num_heads, sizes.state_rows * sizes.state_columns),
             metrics::StateErrorAccumulator(sizes.num_heads, sizes.state_rows)});
  entry->second.state.add(floats(run.state), state);
  entry->second.output.add(floats(run.y), output);
}

std::vector<reports::StateError> StateProbe::Impl::rows() const {
  std::vector<reports::StateError> rows;
  for (const auto& [key, errors] : errors_) {
    const auto& [arm, depth, mixer, position] = key;
    const metrics::StateErrorNorms state = errors.state.norms();
    reports::StateError row;
    row.arm = arms_[arm].name;
    row.depth = std::string(error_depth_name(depth));
    row.layer = model_.mixer_layers()[mixer];
    row.position = position;
    row.relative_frobenius = state.all.relative_frobenius;
    row.max_abs = state.all.max_abs;
    row.cosine = state.all.cosine;
    row.output_relative_error = errors.output.norms().all.relative_frobenius;
    for (const metrics::ErrorNorms& head : state.heads) row.head_relative_frobenius.push_back(head.relative_frobenius);
    rows.push_back(std::move(row));
  }
  return rows;
}

StateProbe::StateProbe(const Model& model, std::vector<Arm> arms, std::size_t baseline,
                       std::vector<std::int64_t> positions, std::vector<ErrorDepth> depths) {
  if (positions.empty() || positions.front() < 1 || !std::is_sorted(positions.begin(), positions.end())) {
    throw std::invalid_argument("state_error: positions must be ascending and at least 1");
  }
  impl_ = std::make_unique<Impl>(model, std::move(arms), baseline, std::move(positions), std::move(depths));
}

StateProbe::~StateProbe() = default;

void StateProbe::add(const at::Tensor& ids) { impl_->add(ids); }

std::vector<reports::StateError> StateProbe::rows() const { return impl_->rows(); }

}  // namespace replayeval
