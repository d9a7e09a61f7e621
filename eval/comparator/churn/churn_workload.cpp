#include "eval/comparator/churn/churn_workload.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "datasets/random_ids.h"
#include "eval/comparator/churn/mixer_churn.h"
#include "eval/comparator/churn/model_churn.h"
#include "eval/comparator/progress.h"
#include "eval/metrics/prediction_limit.h"

namespace replayeval {
namespace {

constexpr double bound_confidence = 0.999;
// A bound is at least the largest deviation that was measured, and at most so many times that. Most tokens of a 16-bit
// model deviate by nothing, and a log-normal law through the few that do promises any size.
constexpr double bound_stretch = 8.0;

// The sequences of all batches: smaller ones take the first.
struct Sequences {
  at::Tensor ids;  // [sequences, length + 1]
  std::vector<std::int64_t> lengths;
};

Sequences make_sequences(const WorkloadConfig& workload, std::int64_t vocab_size) {
  const ChurnConfig& config = *workload.churn;
  std::int64_t count = 0;
  for (const std::int64_t batch : config.batches) count = std::max(count, churn_sequences(config, batch));
  const datasets::RandomIds documents({"churn", count, config.length + 1, config.seed}, vocab_size);
  Sequences sequences;
  std::vector<std::int64_t> ids;
  for (std::int64_t number = 0; number < count; ++number) {
    const std::vector<std::int32_t> document = documents.document(number);
    ids.insert(ids.end(), document.begin(), document.end());
    sequences.lengths.push_back(churn_sequence(workload, number).length);
  }
  sequences.ids = at::tensor(ids, at::kLong).view({count, config.length + 1});
  return sequences;
}

// The inputs of a model's first `mixers` mixers under the baseline: [sequences, length, projection] each.
class InputRecorder final : public MixerTap {
 public:
  explicit InputRecorder(std::size_t mixers) : parts_(mixers) {}
  void on_mixer(std::int64_t mixer, std::size_t /*arm*/, const at::Tensor& projected) override {
    if (static_cast<std::size_t>(mixer) < parts_.size()) parts_[static_cast<std::size_t>(mixer)].push_back(projected);
  }
  at::Tensor of(std::size_t mixer) const { return at::cat(parts_[mixer]); }

 private:
  std::vector<std::vector<at::Tensor>> parts_;
};

InputRecorder record_inputs(const RunContext& context, const at::Tensor& ids, std::size_t mixers) {
  constexpr std::int64_t rows = 16;
  InputRecorder recorder(mixers);
  const at::Tensor inputs = ids.narrow(1, 0, ids.size(1) - 1);
  for (const at::Tensor& part : inputs.split(rows)) {
    const auto cache = context.model.make_cache({context.arms[context.baseline]}, part.size(0), part.size(1));
    context.model.forward(part.contiguous(), *cache, Mode::teacher_forced, nullptr, &recorder);
  }
  return recorder;
}

// The run's arms, then the exact arms that bound them, where these are not among the run's.
struct Controlled {
  std::vector<Arm> arms;
  std::vector<std::size_t> control;  // of each of the run's arms
};

Controlled with_controls(const std::vector<Arm>& arms) {
  Controlled all{arms, {}};
  for (const Arm& arm : arms) {
    const Arm control = churn_control(arm);
    const auto same = [&](const Arm& other) { return same_arithmetic(other, control); };
    const auto found = std::find_if(all.arms.begin(), all.arms.end(), same);
    all.control.push_back(static_cast<std::size_t>(found - all.arms.begin()));
    if (found == all.arms.end()) all.arms.push_back(control);
  }
  return all;
}

std::vector<double> all_of(const std::map<std::int64_t, std::vector<double>>& by_slots) {
  std::vector<double> all;
  for (const auto& [slots, deviations] : by_slots) all.insert(all.end(), deviations.begin(), deviations.end());
  return all;
}

double largest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

double bound_from(const std::vector<double>& deviations, std::int64_t draws) {
  const double measured = largest(deviations);
  return std::clamp(metrics::largest_to_expect(deviations, draws, bound_confidence), measured,
                    bound_stretch * measured);
}

class ChurnRun {
 public:
  ChurnRun(const RunContext& context, const WorkloadConfig& workload)
      : context_(context),
        workload_(workload),
        sequences_(make_sequences(workload, context.model.vocab_size())),
        progress_(workload.name, units(), context.quiet) {
    for (const Arm& arm : context.arms) names_.push_back(arm.name);
    for (const std::int64_t batch : workload.churn->batches) scripts_.push_back(make_churn_script(workload, batch));
    for (const std::int64_t batch : workload.churn->batches) tallies_.emplace_back(batch);
  }

  void run(reports::Workload& result) {
    progress_.start();
    run_mixers();
    if (workload_.churn->whole_model) run_model(result);
    progress_.finish();
    for (std::size_t batch = 0; batch < tallies_.size(); ++batch)
      for (reports::ChurnCheck& check : tallies_[batch].checks(names_))
        result.churn.push_back(bounded(std::move(check), scripts_[batch].stays));
    for (const reports::ChurnCheck& check : result.churn)
      if (!std::isfinite(check.max_deviation))
        throw std::runtime_error(fmt::format("workload '{}', arm '{}': outputs of its {}s are not finite",
                                             workload_.name, check.arm, check.level));
    describe(result);
  }

 private:
  std::size_t mixers() const {
    const auto all = static_cast<std::int64_t>(context_.model.mixers().size());
    return static_cast<std::size_t>(std::min(workload_.churn->mixers.value_or(all), all));
  }
  std::int64_t units() const {
    const auto batches = static_cast<std::int64_t>(workload_.churn->batches.size());
    return batches * (static_cast<std::int64_t>(mixers()) + (workload_.churn->whole_model ? 2 : 0));
  }

  void run_mixers() {
    const InputRecorder inputs = record_inputs(context_, sequences_.ids, mixers());
    for (std::size_t mixer = 0; mixer < mixers(); ++mixer) {
      MixerChurn churn(context_.model.mixers()[mixer], context_.arms, inputs.of(mixer), sequences_.lengths,
                       workload_.block);
      for (std::size_t batch = 0; batch < scripts_.size(); ++batch) {
        churn.follow(scripts_[batch], tallies_[batch]);
        progress_.add(1);
      }
      decoded_ += churn.decoded_tokens();
    }
  }

  // Batch sizes at which the arms are measured without any event, and of how many sequences each: those of the run and
  // the powers of two below, which the calls of a disturbed run have, too.
  std::map<std::int64_t, std::int64_t> calm_sizes() const {
    const auto all = static_cast<std::int64_t>(sequences_.lengths.size());
    std::map<std::int64_t, std::int64_t> sizes;
    for (std::int64_t slots = 1; slots < workload_.churn->batches.back(); slots *= 2)
      sizes[slots] = std::min(all, std::max<std::int64_t>(12, 2 * slots));
    for (const std::int64_t batch : workload_.churn->batches) sizes[batch] = all;
    return sizes;
  }

  // Calm runs at many batch sizes say how far an arm deviates from itself; then come the disturbed ones.
  void run_model(reports::Workload& result) {
    const Controlled all = with_controls(context_.arms);
    ModelChurn model(context_.model, all.arms, sequences_.ids, sequences_.lengths, workload_.block,
                     workload_.churn->page_length);
    for (const auto& [slots, sequences] : calm_sizes())
      model.follow_calm(make_calm_script(workload_, slots, sequences));
    progress_.add(static_cast<std::int64_t>(scripts_.size()));
    for (std::size_t batch = 0; batch < scripts_.size(); ++batch) {
      model.follow(scripts_[batch], tallies_[batch]);
      progress_.add(1);
    }
    for (std::size_t arm = 0; arm < context_.arms.size(); ++arm) {
      const std::size_t control = all.control[arm];
      calm_[names_[arm]] = {all_of(model.calm_deviations(control)), all.arms[control].name};
      check_calm(arm, model.calm_deviations(arm), model.single_deviations(arm), result);
    }
    decoded_ += model.decoded_tokens();
    result.data["most_key_value_bytes"] = model.most_page_bytes();
  }

  // Whatever mixes up the rows of a batch shows in calm runs, too, and would widen the bound that is taken from them.
  // So these are held against the tokens of one sequence at once, arm by arm.
  void check_calm(std::size_t arm, const std::map<std::int64_t, std::vector<double>>& by_slots,
                  const std::vector<double>& single, reports::Workload& result) const {
    const std::vector<double> all = all_of(by_slots);
    result.arms[names_[arm]].metrics["calm_max_deviation"] = {
        largest(all), {}, {}, static_cast<std::int64_t>(all.size())};
    const auto draws = static_cast<std::int64_t>(names_.size() * all.size()) * workload_.churn->length;
    for (const auto& [slots, deviations] : by_slots) {
      if (slots == 1) continue;
      reports::ChurnCheck check;
      check.level = churn_level_name(ChurnLevel::model);
      check.event = churn_kind_name(ChurnKind::batch_size);
      check.arm = names_[arm];
      check.batch = slots;
      check.compared = static_cast<std::int64_t>(deviations.size());
      check.differing = std::count_if(deviations.begin(), deviations.end(), [](double value) { return value > 0.0; });
      check.max_deviation = largest(deviations);
      check.bound = bound_from(single, draws);
      check.bound_from = names_[arm] + ", one sequence at once";
      check.measured = largest(single);
      result.churn.push_back(std::move(check));
    }
  }

  // The largest of the disturbed sequences' deviations stays below this, all arms and batches together, with
  // bound_confidence, if it is of the same kind as the exact arm's own.
  reports::ChurnCheck bounded(reports::ChurnCheck check, std::int64_t stays) const {
    if (check.level != churn_level_name(ChurnLevel::model)) return check;
    const auto& [deviations, from] = calm_.at(check.arm);
    const auto tests = static_cast<std::int64_t>(names_.size() * scripts_.size());
    check.bound = bound_from(deviations, tests * stays);
    check.bound_from = from;
    check.measured = largest(deviations);
    return check;
  }

  void describe(reports::Workload& result) const {
    result.data["prompt"] = prompt_name(workload_.prompt);
    result.data["tokens_decoded"] = decoded_;
    result.data["sequences"] = sequences_.lengths.size();
    result.data["mixers"] = mixers();
    if (workload_.churn->whole_model) result.data["bound_confidence"] = bound_confidence;
    for (const ChurnScript& script : scripts_)
      result.data["events"].push_back({{"batch", script.slots}, {"counts", script.events}});
  }

  const RunContext& context_;
  const WorkloadConfig& workload_;
  Sequences sequences_;
  Progress progress_;
  std::vector<std::string> names_;
  std::vector<ChurnScript> scripts_;  // by batch, as the tallies
  std::vector<ChurnTally> tallies_;
  std::map<std::string, std::pair<std::vector<double>, std::string>> calm_;  // by arm: of its control, and its name
  std::int64_t decoded_ = 0;
};

}  // namespace

Arm churn_control(const Arm& arm) {
  Arm control;
  control.state_storage = arm.state_storage;
  if (arm.executor == Executor::replay && dtype_size(arm.replay.ring_dtype) < dtype_size(arm.state_storage.dtype))
    control.state_storage.dtype = arm.replay.ring_dtype;
  control.name = fmt::format("exact, {} state", dtype_name(control.state_storage.dtype));
  return control;
}

reports::Workload run_churn(const RunContext& context, const WorkloadConfig& workload) {
  const auto start = std::chrono::steady_clock::now();
  reports::Workload result;
  result.name = workload.name;
  result.kind = workload.kind;
  ChurnRun(context, workload).run(result);
  describe_memory(context, result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace replayeval
