// What happens to the states, and what an arm costs in time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reports/numbers.h"
#include "reports/sections.h"
#include "reports/summary.h"

namespace replayeval::reports::sections {
namespace {

constexpr const char* absent = "–";

std::vector<std::string> all_arms(const Results& results) {
  std::vector<std::string> names;
  for (const nlohmann::json& arm : results.arms) names.push_back(arm.at("name"));
  return names;
}

const char* depth_words(const std::string& depth) {
  if (depth == "local") return "Local: the arm is fed the baseline's mixer inputs, the truth is the baseline's state";
  if (depth == "propagated") return "Propagated: each arm on its own stream, the truth is the baseline's state";
  return "Against gold: the float64 recurrence on the inputs that the arm itself saw";
}

Blocks depth_table(const Results& results, const Workload& workload, const std::string& depth) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::string>, const StateError*> errors;  // layer, position, arm
  std::set<std::string> present;
  std::set<std::pair<std::int64_t, std::int64_t>> rows;
  for (const StateError& error : workload.state_errors) {
    if (error.depth != depth) continue;
    errors[{error.layer, error.position, error.arm}] = &error;
    present.insert(error.arm);
    rows.insert({error.layer, error.position});
  }
  if (rows.empty()) return {};
  std::vector<std::string> arms = all_arms(results);
  std::erase_if(arms, [&](const std::string& arm) { return !present.contains(arm); });
  std::vector<Text> titles = {"layer", "tokens decoded"};
  for (const std::string& arm : arms) titles.push_back(code(arm));
  Table table(titles);
  for (const auto& [layer, position] : rows) {
    std::vector<Text> row = {std::to_string(layer), count_text(position)};
    for (const std::string& arm : arms) {
      const auto found = errors.find({layer, position, arm});
      if (found == errors.end()) {
        row.emplace_back(absent);
        continue;
      }
      const StateError& error = *found->second;
      const auto& heads = error.head_relative_frobenius;
      const double worst = heads.empty() ? error.relative_frobenius : *std::max_element(heads.begin(), heads.end());
      row.push_back(fmt::format("{} ({}; y {})", significant(error.relative_frobenius, 3), significant(worst, 2),
                                significant(error.output_relative_error, 2)));
    }
    table.add_row(row);
  }
  return {Paragraph{fmt::format("{}.", depth_words(depth))}, table};
}

bool anything_odd(const StorageCount& count) { return count.saturated + count.subnormal + count.non_finite > 0; }

std::string bytes_cell(const std::optional<std::int64_t>& bytes) {
  return bytes ? bytes_text(static_cast<double>(*bytes)) : absent;
}

Blocks kernel_table(const Results& results, const Workload& workload) {
  std::set<std::string> kernels;
  std::map<std::pair<std::string, std::string>, KernelTime> times;  // arm, kernel
  for (const KernelTime& time : workload.kernel_times) {
    kernels.insert(time.kernel);
    KernelTime& sum = times[{time.arm, time.kernel}];
    sum.calls += time.calls;
    sum.seconds += time.seconds;
  }
  if (kernels.empty()) return {};
  std::vector<std::string> columns = all_arms(results);
  columns.insert(columns.begin(), "");
  std::vector<Text> titles = {"kernel", "shared by all"};
  for (std::size_t i = 1; i < columns.size(); ++i) titles.push_back(code(columns[i]));
  Table table(titles);
  for (const std::string& kernel : kernels) {
    std::vector<Text> row = {code(kernel)};
    for (const std::string& arm : columns) {
      const auto found = times.find({arm, kernel});
      row.push_back(found == times.end()
                        ? ""
                        : fmt::format("{} / {}", seconds_text(found->second.seconds), count_text(found->second.calls)));
    }
    table.add_row(row);
  }
  return {Paragraph{"Time by kernel: wall time / calls."}, table};
}

}  // namespace

Blocks state_error(const Results& results, const Workload& workload) {
  Blocks tables;
  for (const char* depth : {"local", "propagated", "gold"}) append(tables, depth_table(results, workload, depth));
  if (tables.empty()) return {};
  Blocks blocks = {Heading{3, "State error"},
                   Paragraph{"Relative Frobenius error over all heads (in brackets: the worst head; y: relative error "
                             "of the mixer's output)."}};
  append(blocks, std::move(tables));
  return blocks;
}

Blocks storage(const Results& results, const Workload& workload) {
  if (workload.storage_counts.empty()) return {};
  Table table({"arm", "layer", "saturated", "subnormal", "not finite"});
  for (const std::string& arm : all_arms(results)) {
    for (const StorageCount& count : workload.storage_counts) {
      if (count.arm != arm || !anything_odd(count)) continue;
      table.add_row({code(arm), std::to_string(count.layer), count_text(count.saturated), count_text(count.subnormal),
                     count_text(count.non_finite)});
    }
  }
  const Heading heading{3, "Stored states"};
  if (table.empty())
    return {heading, Paragraph{"No stored value was saturated, subnormal or not finite, in any arm and layer."}};
  return {heading,
          Paragraph{"Stored values that are out of the ordinary, summed over all stores; layers without any are left "
                    "out."},
          table};
}

Blocks speed(const Results& results, const Workload& workload) {
  Table table({"arm", "time in mixers", "tokens/s", "of baseline", "state a sequence", "ring a sequence"});
  for (const ArmSummary& arm : summarise(results, workload)) {
    const auto found = workload.arms.find(arm.name);
    if (found == workload.arms.end()) continue;
    table.add_row({code(arm.name), seconds_text(found->second.seconds), significant(found->second.tokens_per_second, 4),
                   arm.speed_ratio ? fmt::format("{:.3f}×", *arm.speed_ratio) : absent,
                   bytes_cell(found->second.state_bytes), bytes_cell(found->second.ring_bytes)});
  }
  std::string text = fmt::format("The workload took {}.", seconds_text(workload.seconds));
  if (workload.data.contains("tokens_per_second_method"))
    text += fmt::format(" Tokens/s: {}.", workload.data["tokens_per_second_method"].get<std::string>());
  if (workload.data.value("mode", std::string()) == "teacher_forced")
    text += " Scoring in blocks keeps states on chip: these times are the cost of this evaluation, not of serving.";
  if (workload.data.value("cuda_graphs", false)) text += " Steps were replayed as CUDA graphs.";
  Blocks blocks = {Heading{3, "Speed"}, Paragraph{text}, table};
  append(blocks, kernel_table(results, workload));
  return blocks;
}

}  // namespace replayeval::reports::sections
