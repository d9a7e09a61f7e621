#include "reports/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "reports/churn_table.h"
#include "reports/generation_table.h"
#include "reports/metric_names.h"
#include "reports/numbers.h"

namespace replayeval::reports {
namespace {

constexpr const char* absent = "–";

template <typename Map>
const Metric* metric_in(const Map& map, const std::string& arm, const char* metric) {
  const auto found = map.find(arm);
  if (found == map.end()) return nullptr;
  const auto value = found->second.find(metric);
  return value == found->second.end() ? nullptr : &value->second;
}

template <typename Map>
std::optional<double> value_in(const Map& map, const std::string& arm, const char* metric) {
  const Metric* found = metric_in(map, arm, metric);
  return found == nullptr ? std::nullopt : std::optional<double>(found->value);
}

std::optional<double> worst_error(const Workload& workload, const std::string& arm, const char* depth) {
  std::optional<double> worst;
  for (const StateError& error : workload.state_errors) {
    if (error.arm == arm && error.depth == depth) worst = std::max(worst.value_or(0.0), error.relative_frobenius);
  }
  return worst;
}

void add_speed(const Workload& workload, const std::string& baseline, ArmSummary* summary) {
  const auto arm = workload.arms.find(summary->name);
  if (arm == workload.arms.end()) return;
  summary->mixer_seconds = arm->second.seconds;
  summary->tokens_per_second = arm->second.tokens_per_second;
  const auto base = workload.arms.find(baseline);
  if (base != workload.arms.end() && base->second.tokens_per_second > 0.0) {
    summary->speed_ratio = arm->second.tokens_per_second / base->second.tokens_per_second;
  }
}

void add_quality(const Workload& workload, ArmSummary* summary) {
  const std::string& name = summary->name;
  if (const auto arm = workload.arms.find(name); arm != workload.arms.end()) {
    if (const auto metric = arm->second.metrics.find(names::perplexity); metric != arm->second.metrics.end()) {
      summary->perplexity = metric->second.value;
      summary->perplexity_error = half_width(metric->second.low, metric->second.high);
    }
  }
  if (const auto deltas = workload.deltas.find(name); deltas != workload.deltas.end()) {
    if (const auto delta = deltas->second.find(names::perplexity_ratio); delta != deltas->second.end()) {
      summary->perplexity_ratio = delta->second;
    }
  }
  summary->kl_mean = value_in(workload.divergence, name, names::kl_mean);
  summary->kl_p999 = value_in(workload.divergence, name, names::kl_p999);
  summary->kl_max = value_in(workload.divergence, name, names::kl_max);
  if (const Metric* same = metric_in(workload.divergence, name, names::same_top1)) {
    summary->same_top1 = same->value;
    summary->same_top1_error = half_width(same->low, same->high);
  }
}

// A number under `key`, with thousands separated, or "".
std::string count_in(const nlohmann::json& data, const char* key) {
  return data.contains(key) && data[key].is_number_integer() ? count_text(data[key].get<std::int64_t>()) : "";
}

// "496 answers in 160 documents" of a recall workload.
std::string recall_line(const Workload& workload) {
  std::int64_t documents = 0, answers = 0;
  for (const RecallCell& cell : workload.recall) {
    documents += cell.documents;
    if (!cell.accuracy.empty()) answers += cell.accuracy.begin()->second.n.value_or(0);
  }
  return documents == 0 ? "" : fmt::format("{} answers in {} documents", count_text(answers), count_text(documents));
}

}  // namespace

std::string perplexity_text(const ArmSummary& arm) { return arm.perplexity ? significant(*arm.perplexity, 6) : absent; }

std::string same_top1_percent(const ArmSummary& arm) {
  if (!arm.same_top1) return absent;
  if (*arm.same_top1 == 1.0) return "100";
  if (arm.same_top1_error && *arm.same_top1_error > 0.0)
    return rounded(100.0 * *arm.same_top1, 100.0 * *arm.same_top1_error, 6);
  return fmt::format("{:.{}f}", 100.0 * *arm.same_top1, *arm.same_top1 > 0.999 ? 4 : 2);
}

std::string checkpoint_name(const Results& results) {
  const std::string path = results.checkpoint.value("path", "?");
  const std::string name = std::filesystem::path(path).filename().string();
  return name.empty() ? path : name;
}

std::string arm_description(const nlohmann::json& arm) {
  const nlohmann::json& storage = arm.at("state_storage");
  std::string text = arm.at("executor").get<std::string>();
  const bool replay = arm.contains("buffer_len");
  if (replay) text += fmt::format(", L = {}", arm["buffer_len"].get<std::int64_t>());
  text += fmt::format(", {} state", storage.at("dtype").get<std::string>());
  if (storage.value("overflow", "infinity") == "saturate") text += " (saturating)";
  if (replay) {
    text += fmt::format(", {} ring of {}", arm.value("ring_storage", "?"), arm.value("ring_form", "?"));
    if (arm.value("route", "output_only") != "output_only") text += ", " + arm["route"].get<std::string>();
    if (arm.value("flush", "summed") != "summed") text += fmt::format(", {} flush", arm["flush"].get<std::string>());
  }
  return text;
}

std::vector<ArmSummary> summarise(const Results& results, const Workload& workload) {
  std::vector<ArmSummary> summaries;
  for (const nlohmann::json& arm : results.arms) {
    ArmSummary& summary = summaries.emplace_back();
    summary.name = arm.at("name").get<std::string>();
    summary.description = arm_description(arm);
    summary.is_baseline = summary.name == results.baseline;
    add_quality(workload, &summary);
    summary.local_error = worst_error(workload, summary.name, "local");
    summary.propagated_error = worst_error(workload, summary.name, "propagated");
    summary.gold_error = worst_error(workload, summary.name, "gold");
    add_speed(workload, results.baseline, &summary);
    for (const StorageCount& count : workload.storage_counts) {
      if (count.arm != summary.name) continue;
      summary.saturated += count.saturated;
      summary.non_finite += count.non_finite;
    }
  }
  return summaries;
}

std::string data_line(const Workload& workload) {
  const nlohmann::json& data = workload.data;
  std::string text;
  if (workload.kind == "churn") return churn_line(workload);
  if (workload.kind == "recall") return recall_line(workload);
  if (data.contains("sources") && data["sources"].is_array()) {
    for (const nlohmann::json& source : data["sources"]) {
      text += (text.empty() ? "" : ", ") + source.value("name", std::string("?"));
    }
  }
  if (has_generated(workload)) return text + (text.empty() ? "" : ": ") + generation_line(workload);
  const std::string scored = count_in(data, "tokens_scored");
  const std::string documents = count_in(data, "documents");
  if (!scored.empty()) text += fmt::format("{}{} tokens scored", text.empty() ? "" : ": ", scored);
  if (!documents.empty()) text += fmt::format(" in {} document{}", documents, documents == "1" ? "" : "s");
  return text;
}

std::string warnings_of(const Workload& workload) {
  std::string text;
  if (!workload.data.contains("warnings")) return text;
  for (const nlohmann::json& warning : workload.data["warnings"]) text += warning.get<std::string>() + "\n";
  return text;
}

std::string mode_line(const Workload& workload) {
  const nlohmann::json& data = workload.data;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " · ") + part; };
  const std::string context = count_in(data, "context");
  const std::string stride = count_in(data, "stride");
  if (!context.empty()) add("context " + context + (stride.empty() ? "" : ", stride " + stride));
  if (data.contains("mode")) add(data["mode"].get<std::string>());
  if (data.contains("prompt")) {
    const std::string prefilled = count_in(data, "prefill_tokens");
    add("prompt: " + data["prompt"].get<std::string>() +
        (prefilled.empty() ? "" : fmt::format(" of each window's first {} tokens", prefilled)));
  }
  return text;
}

}  // namespace replayeval::reports
