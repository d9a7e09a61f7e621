#include "eval/cli/bench_model_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/comparator/on_stderr.h"
#include "reports/numbers.h"

namespace replayeval {
namespace {

double speedup(const ModelBenchReport& report, const DecodeSpeed& row) {
  for (const DecodeSpeed& other : report.rows)
    if (other.batch == row.batch && other.arm == report.baseline && other.not_run.empty())
      return other.step_seconds.median / row.step_seconds.median;
  return 0.0;
}

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }
std::string ratio(double value) { return value > 0.0 ? fmt::format("{:.3f}×", value) : "–"; }
std::string percent(double share) { return share > 0.0 ? fmt::format("{:.1f}%", 100.0 * share) : "–"; }
std::string bytes(std::int64_t count) { return count == 0 ? "–" : reports::bytes_text(static_cast<double>(count)); }

void print_row(const ModelBenchReport& report, const DecodeSpeed& row, std::size_t name_width) {
  fmt::print("{:>6}  {:<{}}", row.batch, row.arm, name_width);
  if (!row.not_run.empty()) {
    fmt::print("  not run: {}\n", row.not_run);
    return;
  }
  fmt::print("{:>10}  {:<20}{:>10}{:>13}{:>12}{:>11}{:>9}{:>13}{:>12}\n", milliseconds(row.step_seconds.median),
             fmt::format("[{}, {}]", milliseconds(row.step_seconds.low), milliseconds(row.step_seconds.high)),
             fmt::format("{:.0f}", row.tokens_per_second), ratio(row.arms.size() == 1 ? speedup(report, row) : 0.0),
             milliseconds(row.predicted_seconds), percent(row.predicted_seconds / row.step_seconds.median),
             percent(row.mixer_share), bytes(row.cache_bytes), bytes(row.device_bytes));
}

void print_decoding(const ModelBenchReport& report) {
  std::size_t width = 24;
  for (const DecodeSpeed& row : report.rows) width = std::max(width, row.arm.size() + 1);
  fmt::print("{:>6}  {:<{}}{:>10}  {:<20}{:>10}{:>13}{:>12}{:>11}{:>9}{:>13}{:>12}\n", "batch", "arm", width,
             "ms a step", "[min, max]", "tokens/s", "of baseline", "predicted", "reached", "mixers", "state", "peak");
  for (const DecodeSpeed& row : report.rows) print_row(report, row, width);
}

void print_stacked(const std::vector<StackedSpeed>& all) {
  if (all.empty()) return;
  fmt::print("\n{:>6}  {:>10}  {:<24}{:>10}{:>16}{:>14}{:>22}\n", "batch", "stacked", "slower alone", "ms a step",
             "other's mixers", "of slower", "of slower and mixers");
  for (const StackedSpeed& row : all)
    fmt::print("{:>6}  {:>10}  {:<24}{:>10}{:>16}{:>13}{:>21}\n", row.batch, milliseconds(row.stacked), row.slower,
               milliseconds(row.slower_alone), milliseconds(row.mixers_of_other), ratio(row.stacked / row.slower_alone),
               ratio(row.stacked / (row.slower_alone + row.mixers_of_other)));
}

void print_mixer_parts(const ModelBenchReport& report) {
  fmt::print("\n{:>6}  {:<24}  mixers, ms a step\n", "batch", "arm");
  for (const DecodeSpeed& row : report.rows)
    for (const auto& [arm, parts] : row.mixer_parts) {
      fmt::print("{:>6}  {:<24}  ", row.batch, row.arms.size() == 1 ? arm : arm + " of " + row.arm);
      for (const auto& [part, seconds] : parts) fmt::print("{} {}  ", part, milliseconds(seconds));
      fmt::print("\n");
    }
}

// What was measured how, where the table cannot say it.
void print_method(const ModelBenchReport& report) {
  std::string obstacle;
  bool graphs = false;
  for (const DecodeSpeed& row : report.rows) {
    if (!row.not_run.empty()) continue;
    graphs = graphs || row.graph_obstacle.empty();
    if (!row.graph_obstacle.empty()) obstacle = row.graph_obstacle;
  }
  if (graphs)
    say("Steps replayed as CUDA graphs; mixers timed by events inside the graph, their parts in a round of their "
        "own with more events.\n");
  if (!obstacle.empty()) say("Steps launched kernel by kernel: {}.\n", obstacle);
  say("Predicted: bytes of weights, states, rings, keys and values at {:.2f} TB/s of measured reads.\n",
      report.read_bandwidth / 1e12);
}

void print_scoring(const ScoringSpeed& speed) {
  fmt::print("{} sequences of {} tokens, blocks of {}: {:.0f} tokens/s, each under every arm ({:.3f} s)\n",
             speed.sequences, speed.context, speed.block, speed.tokens_per_second, speed.seconds);
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [part, share] : speed.share) parts.emplace_back(share, part);
  std::sort(parts.rbegin(), parts.rend());
  for (const auto& [share, part] : parts) fmt::print("{:>7.1f}%  {}\n", 100.0 * share, part);
  for (const auto& [arm, kernels] : speed.mixers)
    for (const auto& [kernel, share] : kernels) fmt::print("{:>7.1f}%  mixers, {}: {}\n", 100.0 * share, arm, kernel);
}

nlohmann::json describe(const DecodeSpeed& row) {
  nlohmann::json described = {{"arm", row.arm}, {"batch", row.batch}};
  described["steps_per_round"] = row.steps_per_round;
  described["step_seconds"] = {
      {"median", row.step_seconds.median}, {"low", row.step_seconds.low}, {"high", row.step_seconds.high}};
  described["tokens_per_second"] = row.tokens_per_second;
  described["mixer_seconds"] = row.mixer_seconds;
  described["mixer_share"] = row.mixer_share;
  described["mixer_parts"] = row.mixer_parts;
  if (row.predicted_seconds > 0.0) described["predicted_seconds"] = row.predicted_seconds;
  described["cache_bytes"] = row.cache_bytes;
  described["device_bytes"] = row.device_bytes;
  described["turns"] = row.turns;
  described["cuda_graphs"] = row.graph_obstacle.empty();
  if (!row.graph_obstacle.empty()) described["no_cuda_graphs_because"] = row.graph_obstacle;
  return described;
}

}  // namespace

void print_table(const ModelBenchReport& report) {
  if (report.scoring) {
    print_scoring(*report.scoring);
    return;
  }
  print_decoding(report);
  print_mixer_parts(report);
  print_stacked(stacked_speeds(report.rows));
  print_method(report);
}

nlohmann::json describe(const ModelBenchReport& report) {
  nlohmann::json all = {{"load_seconds", report.load_seconds}, {"baseline", report.baseline}};
  if (report.scoring) {
    const ScoringSpeed& speed = *report.scoring;
    all["scoring"] = {{"sequences", speed.sequences},
                      {"tokens", speed.context},
                      {"block", speed.block},
                      {"seconds", speed.seconds},
                      {"share", speed.share},
                      {"mixers", speed.mixers},
                      {"tokens_per_second", speed.tokens_per_second}};
    return all;
  }
  all["read_bytes_per_second"] = report.read_bandwidth;
  for (const DecodeSpeed& row : report.rows) {
    if (!row.not_run.empty())
      all["not_run"].push_back({{"arm", row.arm}, {"batch", row.batch}, {"because", row.not_run}});
    else
      all[row.arms.size() == 1 ? "rows" : "stacked"].push_back(describe(row));
  }
  const std::vector<StackedSpeed> stacked = stacked_speeds(report.rows);
  for (const StackedSpeed& row : stacked)
    for (nlohmann::json& described : all["stacked"])
      if (described["batch"] == row.batch)
        described["alone"] = {{"slower", row.slower},
                              {"slower_seconds", row.slower_alone},
                              {"mixer_seconds_of_other", row.mixers_of_other}};
  return all;
}

}  // namespace replayeval
