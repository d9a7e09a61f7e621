#include "tests/reports/sample_results.h"

#include <cmath>
#include <string>

#include "reports/metric_names.h"

namespace replayeval::reports {
namespace {

struct SampleArm {
  const char* name;
  const char* state;
  const char* ring;  // "": exact
  double ratio;      // PPL / baseline PPL - 1
  double half_width;
  double kl;
  double state_error;
  double seconds;
};

constexpr double baseline_log_likelihood = -2.5;

constexpr SampleArm sample_arms[] = {
    {"exact_float32", "float32", "", 0.0, 0.0, 0.0, 2.1e-7, 10.0},
    {"exact_float32_again", "float32", "", 0.0, 0.0, 0.0, 2.1e-7, 10.0},
    {"exact_bfloat16", "bfloat16", "", 2.5e-3, 4.0e-4, 3.1e-4, 1.9e-2, 11.0},
    {"replay_float32", "float32", "float32", 1.2e-8, 4.4e-8, 5.0e-12, 3.3e-7, 6.0},
    {"replay_float32_bfloat16", "float32", "bfloat16", -3.0e-4, 1.0e-4, 2.0e-5, 1.1e-3, 5.5},
    {"replay_bfloat16", "bfloat16", "bfloat16", 0.013, 0.002, 9.0e-4, 4.2e-3, 5.0},
};

nlohmann::json arm_json(const SampleArm& arm) {
  nlohmann::json json = {{"name", arm.name},
                         {"executor", *arm.ring == '\0' ? "exact" : "replay"},
                         {"state_storage", {{"dtype", arm.state}, {"overflow", "infinity"}}}};
  if (*arm.ring != '\0') {
    json["ring_form"] = "inputs";
    json["ring_storage"] = arm.ring;
    json["buffer_len"] = 16;
    json["route"] = "output_only";
    json["flush"] = "summed";
  }
  return json;
}

Delta delta_of(double value, double half_width, const std::string& method) {
  return {.value = value,
          .low = value - half_width,
          .high = value + half_width,
          .p_value = 0.5,
          .confidence = 0.95,
          .method = method,
          .interval_kind = method == "paired t" ? "t" : "bootstrap",
          .units = 37};
}

void add_comparison(const SampleArm& arm, Workload* workload) {
  auto& deltas = workload->deltas[arm.name];
  const double log_delta = -std::log1p(arm.ratio);
  deltas[names::perplexity_ratio] = delta_of(arm.ratio, arm.half_width, "paired bootstrap over 37 documents");
  deltas[names::delta_log_likelihood] = delta_of(log_delta, arm.half_width, "paired bootstrap over 37 documents");
  deltas[names::delta_log_likelihood_t] = delta_of(log_delta, 1.1 * arm.half_width, "paired t over 37 documents");
  auto& divergence = workload->divergence[arm.name];
  divergence[names::kl_mean] = {.value = arm.kl, .low = 0.9 * arm.kl, .high = 1.1 * arm.kl, .n = 24000};
  divergence[names::kl_median] = {.value = 0.3 * arm.kl, .low = {}, .high = {}, .n = 24000};
  divergence[names::kl_p999] = {.value = 40.0 * arm.kl, .low = {}, .high = {}, .n = 24000};
  divergence[names::kl_max] = {.value = 500.0 * arm.kl, .low = {}, .high = {}, .n = 24000};
  divergence[names::dp_rms] = {.value = std::sqrt(arm.kl), .low = {}, .high = {}, .n = 24000};
  divergence[names::same_top1] = {.value = 1.0 - 10.0 * arm.kl, .low = {}, .high = {}, .n = 24000};
  divergence[names::tie_share] = {.value = 0.001, .low = {}, .high = {}, .n = 24000};
}

void add_state(const SampleArm& arm, bool is_baseline, Workload* workload) {
  for (const char* depth : {"local", "propagated", "gold"}) {
    if (is_baseline && std::string(depth) != "gold") continue;
    for (const std::int64_t layer : {0, 4}) {
      for (const std::int64_t position : {128, 1024}) {
        const double error = arm.state_error * (layer == 4 ? 1.0 : 0.5) * (position == 1024 ? 1.0 : 0.25);
        workload->state_errors.push_back({.arm = arm.name,
                                          .depth = depth,
                                          .layer = layer,
                                          .position = position,
                                          .relative_frobenius = error,
                                          .max_abs = 3.0 * error,
                                          .cosine = 1.0 - error * error,
                                          .output_relative_error = 0.7 * error,
                                          .head_relative_frobenius = {0.8 * error, 1.3 * error}});
      }
    }
  }
  for (const std::int64_t layer : {0, 4}) {
    const bool odd = std::string(arm.name) == "exact_bfloat16" && layer == 4;
    workload->storage_counts.push_back(
        {.arm = arm.name, .layer = layer, .saturated = 0, .subnormal = odd ? 1234 : 0, .non_finite = 0});
  }
}

Workload sample_workload() {
  Workload workload;
  workload.name = "heldout";
  workload.kind = "perplexity";
  workload.data = {{"sources",
                    {{{"name", "anarchism"},
                      {"path", "text/anarchism/*.txt"},
                      {"documents", 11},
                      {"bytes", 1200000},
                      {"sha256", std::string(64, 'a')}},
                     {{"name", "wordnet"},
                      {"path", "text/wordnet/*.txt"},
                      {"documents", 26},
                      {"bytes", 800000},
                      {"sha256", std::string(64, 'b')}}}},
                   {"context", 1024},
                   {"stride", 512},
                   {"mode", "teacher_forced"},
                   {"prompt", "decode"},
                   {"tokens_scored", 24000},
                   {"documents", 37}};
  for (const SampleArm& arm : sample_arms) {
    const bool is_baseline = &arm == &sample_arms[0];
    const double log_likelihood = baseline_log_likelihood - std::log1p(arm.ratio);
    workload.arms[arm.name] = {
        .metrics = {{names::perplexity, {.value = std::exp(-log_likelihood), .low = {}, .high = {}, .n = 24000}},
                    {names::mean_log_likelihood, {.value = log_likelihood, .low = {}, .high = {}, .n = 24000}}},
        .seconds = arm.seconds,
        .tokens_per_second = 24000.0 / (arm.seconds + 5.0),
        .state_bytes = 131072,
        .ring_bytes = *arm.ring == '\0' ? std::optional<std::int64_t>() : 8704};
    if (!is_baseline) add_comparison(arm, &workload);
    add_state(arm, is_baseline, &workload);
    workload.kernel_times.push_back({.arm = arm.name, .kernel = "mamba2", .calls = 120, .seconds = arm.seconds});
  }
  workload.kernel_times.push_back({.arm = "", .kernel = "dense", .calls = 720, .seconds = 30.0});
  for (const std::int64_t begin : {0, 256, 512}) {
    PositionBucket bucket{.begin = begin, .end = begin + 256, .n = 8000, .perplexity = {}, .delta = {}};
    for (const SampleArm& arm : sample_arms) {
      bucket.perplexity[arm.name].value = 12.0 - static_cast<double>(begin) / 256.0;
      if (&arm == &sample_arms[0]) continue;
      bucket.delta[arm.name] =
          delta_of(-arm.ratio * (1.0 + static_cast<double>(begin) / 512.0), arm.half_width, "bootstrap");
    }
    workload.positions.push_back(bucket);
  }
  workload.seconds = 83.0;
  return workload;
}

}  // namespace

Results sample_results() {
  Results results;
  results.tool = {
      {"name", "replayeval"}, {"version", "0.1.0"}, {"git", "0123456789ab"}, {"build", "release, CPU only"}};
  results.environment = {{"cpu", "A processor"},
                         {"cores", 2},
                         {"os", "Debian GNU/Linux 12"},
                         {"torch", "2.11.0"},
                         {"date", "2026-01-01T00:00:00Z"}};
  results.config = {{"name", "demo"}, {"seed", 0}};
  results.checkpoint = {{"path", "checkpoints/tiny"},
                        {"sha256", std::string(64, 'c')},
                        {"model_type", "nemotron_h"},
                        {"parameters", 6000000}};
  results.numerics = {{"compute_dtype", "float32"}, {"logits", "float32"}};
  for (const SampleArm& arm : sample_arms) results.arms.push_back(arm_json(arm));
  results.baseline = sample_arms[0].name;
  results.workloads.push_back(sample_workload());
  return results;
}

}  // namespace replayeval::reports
