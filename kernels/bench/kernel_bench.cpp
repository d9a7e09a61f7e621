#include "kernels/bench/kernel_bench.h"

#include "kernels/bench/bench_device.h"
#include "kernels/bench/delta_rule_case.h"
#include "kernels/bench/mamba2_case.h"
#include "kernels/bench/mixer_part_bench.h"
#include "kernels/bench/output_check.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>

namespace replayeval::bench {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string device = "cuda";
  std::string family = "mamba2";
  std::string part = "recurrence";
  std::string json;
  Provenance provenance;  // may be empty
  std::vector<std::int64_t> batches = {1, 8, 32, 128, 256, 512};
  std::vector<std::string> states;  // by default the family's usual ones
  std::string ring = "bfloat16";
  std::string ring_form;  // the family's published one by default
  std::string route = "output_only";
  std::string flush = "summed";
  mamba2::Shape mamba2{128, 8, 64, 128};
  delta_rule::Shape delta{16, 32, 128, 128};
  std::int64_t buffer_len = 16;
  std::int64_t block = 1;
  int repeats = 10;
  bool by_position = false;
};

struct Row {
  std::int64_t batch = 0;
  Dtype state = Dtype::float32;
  Timing exact, replay,
      mixed;  // microseconds a step or block; replay with all sequences in step, and at mixed ring positions
  std::vector<Timing> by_position;  // of replay, in step
  double exact_bytes = 0.0, replay_bytes = 0.0;
  double output_error = 0.0;  // output_check.h
};

std::unique_ptr<DecodeCase> make_case(BenchDevice& device, const Options& o, std::int64_t batch, const Part& part,
                                      Dtype state) {
  const ReplayOptions replay{o.buffer_len, o.route == "output_only" ? Route::output_only : Route::state_and_output,
                             o.flush == "summed" ? Flush::summed : Flush::sequential, parse_dtype(o.ring).value(),
                             o.block};
  if (o.family == "mamba2") return make_mamba2_case(device, replay, o.mamba2, batch, part, state);
  const auto family = o.family == "kda" ? delta_rule::Family::kda : delta_rule::Family::gated_delta;
  const auto form = o.ring_form == "inputs" ? delta_rule::RingForm::inputs : delta_rule::RingForm::deltas;
  return make_delta_rule_case(device, replay, family, form, o.delta, batch, part, state);
}

// Of a ring cycle; a block of tokens goes through several cycles by itself.
std::int64_t steps_of(const Options& options) { return options.block > 1 ? 1 : options.buffer_len; }

// Throws std::runtime_error where the outputs are wrong.
double checked_error(DecodeCase& decode, const Options& options, std::int64_t batch, Dtype state) {
  const std::unique_ptr<BenchDevice> cpu = make_cpu_device();
  const double error = output_error(decode, batch, steps_of(options),
                                    [&](const Part& part) { return make_case(*cpu, options, 1, part, state); });
  if (error <= kMostOutputError) return error;
  throw std::runtime_error(
      fmt::format("{} at batch {}, state {}: y is off by {:.2g} (relative Frobenius error against the "
                  "CPU kernels; at most {:g} is right)",
                  options.family, batch, dtype_name(state), error, kMostOutputError));
}

Row time_case(BenchDevice& device, const Options& options, std::int64_t batch, Dtype state) {
  const std::unique_ptr<DecodeCase> decode = make_case(device, options, batch, {}, state);
  const double error = checked_error(*decode, options, batch, state);
  const auto per_step = [](Timing t, double steps) { return Timing{t.median / steps, t.min / steps, t.max / steps}; };
  const auto copies = static_cast<double>(decode->copies());
  const std::int64_t steps = steps_of(options);
  Row row;
  row.batch = batch;
  row.state = state;
  row.output_error = error;
  row.exact_bytes = decode->exact_bytes();
  row.replay_bytes = decode->replay_bytes();
  row.exact = per_step(device.time([&] { decode->exact_steps(); }, options.repeats), copies);
  for (const bool mixed : {false, true}) {
    const auto ring_cycle = [&] {
      for (std::int64_t step = 0; step < steps; ++step) decode->replay_steps(step, mixed);
    };
    (mixed ? row.mixed : row.replay) =
        per_step(device.time(ring_cycle, options.repeats), copies * static_cast<double>(steps));
  }
  for (std::int64_t position = 0; options.by_position && position < options.buffer_len; ++position) {
    const auto at_position = [&] { decode->replay_steps(position, false); };
    row.by_position.push_back(per_step(device.time(at_position, options.repeats), copies));
  }
  return row;
}

std::string span(const Timing& t) { return fmt::format("{:9.2f} [{:.2f}, {:.2f}]", t.median, t.min, t.max); }

void print(const Row& row, double bandwidth) {
  const auto rate = [&](double bytes, const Timing& t) {
    const double per_second = bytes / t.median * 1e6;
    return fmt::format("{:6.3f} {:3.0f}%", per_second / 1e12, 100.0 * per_second / bandwidth);
  };
  std::cout << fmt::format("{:5} {:9} {:30} {:>11}  {:30} {:>11} {:6.2f}x  {:30}\n", row.batch, dtype_name(row.state),
                           span(row.exact), rate(row.exact_bytes, row.exact), span(row.replay),
                           rate(row.replay_bytes, row.replay), row.exact.median / row.replay.median, span(row.mixed));
  if (!row.by_position.empty()) std::cout << "      by ring position:";
  for (const Timing& t : row.by_position) std::cout << fmt::format(" {:.2f}", t.median);
  std::cout << (row.by_position.empty() ? "" : "\n") << std::flush;
}

nlohmann::json to_json(const Row& row) {
  const auto timing = [](const Timing& t, double bytes) {
    return nlohmann::json{{"microseconds", t.median}, {"min", t.min}, {"max", t.max}, {"bytes", bytes}};
  };
  nlohmann::json result{{"batch", row.batch},
                        {"state", dtype_name(row.state)},
                        {"output_error", row.output_error},
                        {"exact", timing(row.exact, row.exact_bytes)},
                        {"replay", timing(row.replay, row.replay_bytes)},
                        {"replay_mixed", timing(row.mixed, row.replay_bytes)}};
  for (const Timing& t : row.by_position) result["replay_by_position"].push_back(t.median);
  return result;
}

nlohmann::json shape_json(const Options& o) {
  if (o.family == "mamba2") {
    return {{"num_heads", o.mamba2.num_heads},
            {"num_groups", o.mamba2.num_groups},
            {"head_dim", o.mamba2.head_dim},
            {"state_size", o.mamba2.state_size},
            {"ring_form", "inputs"}};
  }
  return {{"num_key_heads", o.delta.num_key_heads},
          {"num_value_heads", o.delta.num_value_heads},
          {"key_dim", o.delta.key_dim},
          {"value_dim", o.delta.value_dim},
          {"ring_form", o.ring_form}};
}

std::string shape_words(const Options& o) {
  if (o.family == "mamba2") {
    return fmt::format("{} heads x {} x {}, {} groups", o.mamba2.num_heads, o.mamba2.head_dim, o.mamba2.state_size,
                       o.mamba2.num_groups);
  }
  return fmt::format("{} value heads x {} x {}, {} key heads, {} ring", o.delta.num_value_heads, o.delta.value_dim,
                     o.delta.key_dim, o.delta.num_key_heads, o.ring_form);
}

// A file is written beside its place and put there whole; a pipe or a terminal is written as it is.
fs::path written_as(const fs::path& name) {
  return fs::exists(name) && !fs::is_regular_file(name) ? name : fs::path(name.string() + ".part");
}

[[noreturn]] void refuse_file(const std::string& name) {
  throw std::runtime_error(name + ": cannot be written; expected a file for --json");
}

void write_file(const Options& options, nlohmann::json contents) {
  if (options.provenance) contents.update(options.provenance(options.device == "cuda"));
  const std::string& name = options.json;
  const fs::path part = written_as(name);
  std::ofstream file(part);
  file << contents.dump(2) << '\n';
  file.close();
  std::error_code failure;
  if (file && part != name) fs::rename(part, name, failure);
  if (file && !failure) return;
  if (part != name) fs::remove(part, failure);
  refuse_file(name);
}

void write_json(const Options& options, const BenchDevice& device, double bandwidth, const std::vector<Row>& rows) {
  nlohmann::json result = shape_json(options);
  result.update({{"device", device.name()},
                 {"read_bytes_per_second", bandwidth},
                 {"family", options.family},
                 {"buffer_len", options.buffer_len},
                 {"route", options.route},
                 {"flush", options.flush},
                 {"ring", options.ring},
                 {"repeats", options.repeats},
                 {"rows", nlohmann::json::array()}});
  for (const Row& row : rows) result["rows"].push_back(to_json(row));
  write_file(options, std::move(result));
}

// As a layer of that family has them beside its recurrence.
MixerWidths mixer_widths(const Options& o) {
  MixerWidths w;
  if (o.family == "mamba2") {
    w.inner = o.mamba2.num_heads * o.mamba2.head_dim;
    w.channels = w.inner + 2 * o.mamba2.num_groups * o.mamba2.state_size;
    w.conv_begin = w.inner;
    w.group = w.inner / o.mamba2.num_groups;
    w.projection = w.inner + w.channels + o.mamba2.num_heads;
    return w;
  }
  const bool kda = o.family == "kda";
  w.inner = o.delta.num_value_heads * o.delta.value_dim;
  w.channels = 2 * o.delta.num_key_heads * o.delta.key_dim + w.inner;
  w.gate_begin = w.channels;
  w.group = o.delta.value_dim;
  w.projection = w.channels + w.inner + o.delta.num_value_heads * (kda ? 1 + o.delta.key_dim : 2);
  w.form = GateForm::norm_then_gate;
  w.activation = kda ? GateActivation::sigmoid : GateActivation::silu;
  return w;
}

void run_mixer_part(const Options& options, BenchDevice& device, double bandwidth) {
  const nlohmann::json rows = bench_mixer_part(
      device, bandwidth, {options.part, mixer_widths(options), options.batches, options.block, options.repeats});
  if (options.json.empty()) return;
  nlohmann::json result = shape_json(options);
  result.update({{"device", device.name()},
                 {"read_bytes_per_second", bandwidth},
                 {"family", options.family},
                 {"part", options.part},
                 {"repeats", options.repeats},
                 {"rows", rows}});
  write_file(options, std::move(result));
}

void set_defaults(Options& options) {
  const bool mamba2 = options.family == "mamba2";
  if (options.states.empty()) options.states = {"float32", mamba2 ? "float16" : "bfloat16"};
  if (options.ring_form.empty()) options.ring_form = mamba2 ? "inputs" : "deltas";
}

// Before the work, and without harm to what stands there.
void expect_writable(const std::string& name) {
  const fs::path part = written_as(name);
  if (fs::is_directory(name) || !std::ofstream(part, std::ios::app)) refuse_file(name);
  if (part != name) fs::remove(part);
}

// The library's own check of this names the largest double there is.
std::string expect_count(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 1 ? "" : fmt::format("'{}'; expected a whole number of at least 1", text);
}

void run(const Options& options) {
  if (!options.json.empty()) expect_writable(options.json);
  const std::unique_ptr<BenchDevice> device = options.device == "cpu" ? make_cpu_device() : make_cuda_device();
  const double bandwidth = device->read_bandwidth();
  std::cout << fmt::format("{}, plain reads {:.3f} TB/s; {}: {}", device->name(), bandwidth / 1e12, options.family,
                           shape_words(options));
  if (options.part != "recurrence") {
    std::cout << "; ";
    return run_mixer_part(options, *device, bandwidth);
  }
  std::cout << fmt::format(", L {}, {}, {}, ring {}{}\n", options.buffer_len, options.route, options.flush,
                           options.ring, options.block > 1 ? fmt::format(", blocks of {} tokens", options.block) : "");
  std::cout << fmt::format("{:>5} {:9} {:30} {:>11}  {:30} {:>11} {:>7}  {:30}\n", "batch", "state",
                           "exact us [min, max]", "TB/s share", "replay us [min, max]", "TB/s share", "speedup",
                           "at mixed ring positions");
  std::vector<Row> rows;
  for (const std::string& name : options.states) {
    for (const std::int64_t batch : options.batches) {
      rows.push_back(time_case(*device, options, batch, parse_dtype(name).value()));
      device->release();
      print(rows.back(), bandwidth);
    }
  }
  double worst = 0.0;
  for (const Row& row : rows) worst = std::max(worst, row.output_error);
  std::cout << fmt::format("y against the CPU kernels: relative error at most {:.2g}\n", worst);
  if (!options.json.empty()) write_json(options, *device, bandwidth, rows);
}

}  // namespace

void add_kernel_bench(CLI::App& command, Provenance provenance) {
  auto shared = std::make_shared<Options>();
  Options& options = *shared;
  options.provenance = std::move(provenance);
  command.add_option("--device", options.device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--family", options.family)->check(CLI::IsMember({"mamba2", "gated_delta", "kda"}));
  command.add_option("--part", options.part, "What of the mixer: its recurrence, or what stands before and after it")
      ->check(CLI::IsMember({"recurrence", "conv", "gated_norm"}));
  command.add_option("--batch", options.batches, "Batch sizes")->check(expect_count, "COUNT")->delimiter(',');
  const CLI::IsMember state_types({"float32", "bfloat16", "float16"});
  command.add_option("--state", options.states, "State storage types")->check(state_types)->delimiter(',');
  command.add_option("--ring", options.ring, "Ring storage type")->check(CLI::IsMember({"float32", "bfloat16"}));
  command.add_option("--route", options.route)->check(CLI::IsMember({"output_only", "state_and_output"}));
  command.add_option("--flush", options.flush)->check(CLI::IsMember({"summed", "sequential"}));
  command.add_option("--ring-form", options.ring_form, "gated_delta and kda: what the ring keeps")
      ->check(CLI::IsMember({"deltas", "inputs"}));
  const auto add_count = [&command](const char* name, std::int64_t& value, const char* what) {
    command.add_option(name, value, what)->check(expect_count, "COUNT");
  };
  add_count("--heads", options.mamba2.num_heads, "mamba2");
  add_count("--groups", options.mamba2.num_groups, "mamba2");
  add_count("--head-dim", options.mamba2.head_dim, "mamba2");
  add_count("--state-size", options.mamba2.state_size, "mamba2");
  add_count("--key-heads", options.delta.num_key_heads, "gated_delta and kda");
  add_count("--value-heads", options.delta.num_value_heads, "gated_delta and kda");
  add_count("--key-dim", options.delta.key_dim, "gated_delta and kda");
  add_count("--value-dim", options.delta.value_dim, "gated_delta and kda");
  command.add_option("--buffer-len", options.buffer_len, "Tokens that the ring holds")
      ->check(CLI::Range(std::int64_t{1}, static_cast<std::int64_t>(kMaxBufferLen)));
  command.add_option("--repeats", options.repeats, "Timed runs; the median is shown")->check(expect_count, "COUNT");
  auto* by_position = command.add_flag("--by-position", options.by_position,
                                       "Also the time at each ring position; the last one flushes");
  auto* json = command.add_option("--json", options.json, "Also write the figures to this file");
  command
      .add_option("--block", options.block,
                  "Time calls of this many tokens a sequence, as scoring makes them, not steps")
      ->check(expect_count, "COUNT")
      ->excludes(json, by_position);
  command.callback([shared] {
    set_defaults(*shared);
    run(*shared);
  });
}

}  // namespace replayeval::bench
