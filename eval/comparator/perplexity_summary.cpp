#include "eval/comparator/perplexity_summary.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "eval/comparator/estimates.h"
#include "eval/comparator/token_files.h"
#include "eval/metrics/statistics.h"
#include "eval/npy.h"
#include "reports/atomic_file.h"
#include "reports/metric_names.h"

namespace replayeval {
namespace {

namespace names = reports::names;

// Work that measures instead of decoding, or that computes prompts: it has no part in an arm's speed.
bool is_decoding(const std::string& kernel) { return kernel != "metrics" && kernel != "prefill"; }

void add_positions(const RunContext& context, const WorkloadConfig& workload, const TokenRecords& records,
                   const metrics::IntervalOptions& options, reports::Workload& result) {
  const auto& baseline = records.arms[context.baseline].log_prob;
  // Counted from 0: where in its window the token stands that the prediction was made from.
  std::vector<std::int64_t> place(records.window_position);
  for (std::int64_t& tokens_before : place) --tokens_before;
  std::map<std::int64_t, reports::PositionBucket> buckets;
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    const auto rows = metrics::delta_by_position(baseline, records.arms[arm].log_prob, records.document, place,
                                                 workload.position_buckets, options);
    for (const metrics::BucketDelta& row : rows) {
      reports::PositionBucket& bucket = buckets[row.begin];
      bucket.begin = row.begin;
      bucket.end = row.end;
      bucket.n = row.n;
      bucket.perplexity[context.arms[arm].name].value = row.arm_perplexity;
      if (arm != context.baseline) bucket.delta[context.arms[arm].name] = delta_of(row.delta.primary);
    }
  }
  for (auto& [begin, bucket] : buckets) result.positions.push_back(std::move(bucket));
}

}  // namespace

void summarise_tokens(const RunContext& context, const WorkloadConfig& workload, const TokenRecords& records,
                      reports::Workload& result) {
  const metrics::IntervalOptions options = interval_options(context.config);
  const metrics::TokenDivergence& baseline = records.arms[context.baseline];
  for (std::size_t a = 0; a < context.arms.size(); ++a) {
    const std::string& name = context.arms[a].name;
    const metrics::TokenDivergence& arm = records.arms[a];
    auto& measured = result.arms[name].metrics;
    measured[names::perplexity] = metric_of(metrics::perplexity(arm.log_prob, records.document, options));
    measured[names::mean_log_likelihood] = metric_of(metrics::clustered_t(arm.log_prob, records.document, options));
    if (a == context.baseline) continue;
    result.deltas[name] = perplexity_deltas(baseline, arm, records.document, options);
    for (const auto& [metric, estimate] : metrics::summary(arm, baseline, records.document, options)) {
      result.divergence[name][metric] = metric_of(estimate);
    }
  }
  add_positions(context, workload, records, options, result);
}

std::map<std::string, reports::Delta> perplexity_deltas(const metrics::TokenDivergence& baseline,
                                                        const metrics::TokenDivergence& arm,
                                                        const std::vector<std::int64_t>& document,
                                                        const metrics::IntervalOptions& options) {
  const metrics::MeanEstimate delta = metrics::paired_delta(baseline.log_prob, arm.log_prob, document, options);
  return {{names::delta_log_likelihood, delta_of(delta.primary)},
          {names::delta_log_likelihood_t, delta_of(delta.t)},
          {names::perplexity_ratio, delta_of(metrics::relative_perplexity_delta(delta.primary))},
          {names::perplexity_ratio_t, delta_of(metrics::relative_perplexity_delta(delta.t))}};
}

// How the workload's speed came about, where it has not said so itself.
void describe_speed(const RunContext& context, nlohmann::json& data) {
  if (!data.contains("tokens_per_second_method"))
    data["tokens_per_second_method"] =
        "tokens decoded under each arm over the time of the arm's own kernels and an equal share of what all arms "
        "share; metrics and prefilled prompts apart";
  std::string obstacle = "blocks of known tokens, not steps";
  if (data.value("mode", std::string()) == mode_name(Mode::stepwise))
    obstacle = context.model.make_cache(context.arms, 1, 1)->graph_obstacle();
  data["cuda_graphs"] = obstacle.empty();
  if (!obstacle.empty()) data["no_cuda_graphs_because"] = obstacle;
}

void summarise_costs(const RunContext& context, const Shard& totals, reports::Workload& result) {
  std::map<std::string, double> seconds;
  for (const KernelSeconds& entry : totals.kernel_seconds) {
    if (is_decoding(entry.kernel)) seconds[entry.arm] += entry.seconds;
    result.kernel_times.push_back({entry.arm, entry.kernel, entry.calls, entry.seconds});
  }
  const double share = seconds[""] / static_cast<double>(context.arms.size());
  for (const Arm& arm : context.arms) {
    reports::ArmResult& speed = result.arms[arm.name];
    speed.seconds = seconds[arm.name];
    const double time = seconds[arm.name] + share;  // zero where nothing was decoded
    speed.tokens_per_second = time > 0.0 ? static_cast<double>(totals.decoded_tokens) / time : 0.0;
  }
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    for (std::size_t mixer = 0; mixer < totals.storage_counts[arm].size(); ++mixer) {
      const StorageCounts& counts = totals.storage_counts[arm][mixer];
      result.storage_counts.push_back(
          {context.arms[arm].name, context.model.mixer_layers()[mixer], static_cast<std::int64_t>(counts.saturated),
           static_cast<std::int64_t>(counts.subnormal), static_cast<std::int64_t>(counts.non_finite)});
    }
  }
  result.seconds = totals.seconds;
  describe_speed(context, result.data);
}

void write_token_files(const RunContext& context, const std::string& workload, const TokenRecords& records,
                       const std::vector<datasets::DocumentInfo>& documents, const std::filesystem::path& folder) {
  const auto count = static_cast<std::int64_t>(records.size());
  std::vector<std::int64_t> index;
  index.reserve(records.size() * 4);
  for (std::size_t i = 0; i < records.size(); ++i) {
    index.insert(index.end(),
                 {records.document[i], records.position[i], records.window_position[i], records.target[i]});
  }
  write_npy(folder / token_index_file(workload), {count, 4}, std::span<const std::int64_t>(index));
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    const std::string& name = context.arms[arm].name;
    write_npy(folder / log_prob_file(workload, name), {count}, std::span<const double>(records.arms[arm].log_prob));
    write_npy(folder / kl_file(workload, name), {count}, std::span<const float>(records.arms[arm].kl));
  }
  nlohmann::json list = nlohmann::json::array();
  for (const datasets::DocumentInfo& document : documents) {
    list.push_back({{"source", document.source},
                    {"id", document.id},
                    {"bytes", document.bytes},
                    {"tokens", document.tokens},
                    {"scored", document.scored}});
  }
  reports::write_file_atomically(folder / documents_file(workload), list.dump(1) + "\n");
}

}  // namespace replayeval
