// Decode speed that benchmarks measured, and how many sequences a memory holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/numbers.h"
#include "reports/sections.h"

namespace replayeval::reports::sections {
namespace {

constexpr const char* absent = "–";

std::string times(double ratio) { return fmt::format("{:.3f}×", ratio); }

std::string interval(double value, double low, double high) {
  return fmt::format("{} [{}, {}]", significant(value, 4), significant(low, 4), significant(high, 4));
}

// State and ring of one sequence.
struct Bytes {
  std::int64_t state = 0, ring = 0;
  std::int64_t all() const { return state + ring; }
};

// By arm, as the first workload that measured them says.
std::map<std::string, Bytes> bytes_of(const Results& results) {
  std::map<std::string, Bytes> bytes;
  for (const Workload& workload : results.workloads)
    for (const auto& [name, arm] : workload.arms)
      if (arm.state_bytes) bytes.emplace(name, Bytes{*arm.state_bytes, arm.ring_bytes.value_or(0)});
  return bytes;
}

std::vector<Text> kernel_row(const KernelBench& bench, const KernelBench::Row& row, bool with_ring, bool with_mixed) {
  const auto time = [](const KernelBench::Timing& timing) {
    return interval(timing.microseconds, timing.low, timing.high);
  };
  const auto share = [&](const KernelBench::Timing& timing) {
    return fmt::format("{:.0f} %", 100.0 * roofline_share(bench, timing));
  };
  std::vector<Text> cells = {std::to_string(bench.buffer_len)};
  if (with_ring) cells.emplace_back(fmt::format("{} {}", bench.ring, bench.ring_form));
  for (const std::string& cell : {row.state, count_text(row.batch), time(row.exact), share(row.exact), time(row.replay),
                                  share(row.replay), fmt::format("{:.3f}", row.replay.bytes / row.exact.bytes),
                                  times(row.exact.microseconds / row.replay.microseconds)})
    cells.emplace_back(cell);
  if (with_mixed) {
    cells.emplace_back(row.mixed ? time(*row.mixed) : absent);
    cells.emplace_back(row.mixed ? times(row.exact.microseconds / row.mixed->microseconds) : absent);
  }
  return cells;
}

// " of num_heads 128, head_dim 64"; "" where the files do not say.
std::string shape_text(const KernelBench& bench) {
  std::string text;
  for (const auto& [name, count] : bench.shape)
    text += fmt::format("{}{} {}", text.empty() ? " of " : ", ", name, count);
  return text;
}

// Every file measures the roofline anew.
std::string read_speed(const KernelGroup& group) {
  double low = HUGE_VAL, high = 0.0;
  for (const KernelBench* bench : group.benches) {
    low = std::min(low, bench->read_bytes_per_second);
    high = std::max(high, bench->read_bytes_per_second);
  }
  const std::string least = bytes_text(low), most = bytes_text(high);
  return least == most ? least : fmt::format("{} to {}", least, most);
}

Blocks scoring_bench(const ModelBench& bench) {
  Table table({"part", "of the time"}, {0});
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [part, share] : bench.scoring->share) parts.emplace_back(share, part);
  std::sort(parts.rbegin(), parts.rend());
  for (const auto& [share, part] : parts) table.add_row({part, fmt::format("{:.1f} %", 100.0 * share)});
  return {Heading{3, fmt::format("Teacher-forced scoring: {}, {}", bench.model_type, bench.device)},
          Paragraph{fmt::format("{} tokens/s, each under all {} arms: {} sequences of {} tokens in blocks of {}; {} "
                                "parameters.",
                                count_text(std::llround(bench.scoring->tokens_per_second)), bench.arms.size(),
                                count_text(bench.scoring->sequences), count_text(bench.scoring->tokens),
                                count_text(bench.scoring->block), count_text(bench.parameters))},
          table};
}

}  // namespace

Blocks kernel_bench(const KernelGroup& group) {
  const bool several_rings = group.rings().size() > 1, mixed = group.any_mixed();
  std::vector<Text> titles = {"L"};
  if (several_rings) titles.emplace_back("ring");
  for (const char* title : {"state", "batch", "exact, µs [min, max]", "of roofline", "replay, µs [min, max]",
                            "of roofline", "bytes, replay / exact", "speedup"})
    titles.emplace_back(title);
  if (mixed) titles.insert(titles.end(), {"mixed positions, µs [min, max]", "speedup, mixed"});
  Table table(titles, several_rings ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{1});
  for (const KernelBench* bench : group.benches)
    for (const KernelBench::Row& row : bench->rows) table.add_row(kernel_row(*bench, row, several_rings, mixed));
  std::string text = fmt::format(
      "One decode step of one layer{}, over whole ring cycles, flushes included: {}, {}, {} flush. L: tokens that the "
      "ring holds. Roofline: plain reads on this device, {}/s.",
      shape_text(group.first()), fmt::join(group.rings(), ", "), group.first().route, group.first().flush,
      read_speed(group));
  if (mixed)
    text +=
        " Mixed positions: the sequences stand at all positions of their rings, as those of a server do, so that "
        "some flush at every step; otherwise all stand at one position and flush together.";
  return {Heading{3, heading_of(group)}, Paragraph{text}, table};
}

Blocks model_bench(const ModelBench& bench) {
  if (bench.scoring) return scoring_bench(bench);
  Table table(
      {"batch", "arm", "ms a step [min, max]", "predicted", "tokens/s", "of baseline", "in mixers", "states and rings"},
      {1});
  bool graphs = false;
  for (const ModelBench::Row& row : bench.rows) {
    const std::optional<double> ratio = bench.speed_ratio(row);
    graphs = graphs || row.cuda_graphs.value_or(false);
    table.add_row({count_text(row.batch), code(row.arm),
                   interval(1e3 * row.step_seconds, 1e3 * row.low, 1e3 * row.high),
                   row.predicted_seconds ? significant(1e3 * *row.predicted_seconds, 4) : absent,
                   significant(row.tokens_per_second, 4), ratio ? times(*ratio) : absent,
                   fmt::format("{:.1f} %", 100.0 * row.mixer_share), bytes_text(static_cast<double>(row.cache_bytes))});
  }
  return {Heading{3, fmt::format("Whole model: {}, {}", bench.model_type, bench.device)},
          Paragraph{Text(fmt::format("One token a sequence and step{}, over whole ring cycles, flushes included; {} "
                                     "parameters, {} tokens of context; predicted from the bytes of a step and "
                                     "measured plain reads; baseline ",
                                     graphs ? ", replayed as a CUDA graph" : "", count_text(bench.parameters),
                                     count_text(bench.context))) +
                    code(bench.baseline) + "."},
          table};
}

Table bench_files(const std::vector<BenchFile>& files) {
  Table table({"file", "of", "device", "revision", "build", "date"}, {1, 2, 3, 4, 5});
  for (const BenchFile& file : files) {
    const auto* kernels = std::get_if<KernelBench>(&file.bench);
    const auto* model = std::get_if<ModelBench>(&file.bench);
    const auto known = [](const std::string& text) { return text.empty() ? Text(absent) : code(text); };
    table.add_row(
        {file.name,
         kernels != nullptr
             ? fmt::format("kernels, {}, L = {}, {}", kernels->family, kernels->buffer_len, ring_name(*kernels))
             : fmt::format("{}, {}", model->scoring ? "scoring" : "whole model", model->model_type),
         kernels != nullptr ? kernels->device : model->device, known(file.origin.git), known(file.origin.build),
         known(file.origin.date)});
  }
  return table;
}

Table memory(const Results& results, const std::vector<double>& memories) {
  const std::map<std::string, Bytes> bytes = bytes_of(results);
  std::vector<Text> titles = {"arm", "state", "ring", "a sequence", "of baseline"};
  for (const double memory : memories) titles.emplace_back("fit in " + bytes_text(memory));
  Table table(titles);
  const auto base = bytes.find(results.baseline);
  for (const nlohmann::json& arm : results.arms) {
    const auto found = bytes.find(arm.at("name"));
    if (found == bytes.end()) continue;
    const auto& [name, own] = *found;
    const auto all = static_cast<double>(own.all());
    std::vector<Text> row = {
        code(name), bytes_text(static_cast<double>(own.state)), bytes_text(static_cast<double>(own.ring)),
        bytes_text(all),
        base == bytes.end() || base->second.all() == 0 ? absent : times(all / static_cast<double>(base->second.all()))};
    for (const double memory : memories)
      row.emplace_back(own.all() == 0 ? absent : count_text(static_cast<std::int64_t>(memory / all)));
    table.add_row(row);
  }
  return table;
}

Text memory_note() {
  return "States and rings of all state-space layers, with the decays and scales that are stored with them. The memory "
         "is what is left for these: weights, the convolutions' last inputs and the attention layers' key-value "
         "caches, "
         "which grow with the text, come on top.";
}

}  // namespace replayeval::reports::sections
