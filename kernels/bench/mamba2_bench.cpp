// replayeval_kernel_bench: time of one Mamba-2 decode step, exact against replay, replay over whole ring cycles with
// their flush. State and ring buffers are rotated so that no step finds its state in a cache.
#include "kernels/bench/bench_device.h"
#include "kernels/mamba2/mamba2.h"
#include "kernels/storage_scalar.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <random>
#include <vector>

namespace replayeval::bench {
namespace {

struct Options {
  std::string device = "cuda";
  std::string json;
  std::vector<std::int64_t> batches = {1, 8, 32, 128, 256, 512};
  std::vector<std::string> states = {"float32", "float16"};
  std::string ring = "bfloat16";
  std::string route = "output_only";
  std::string flush = "summed";
  mamba2::Shape shape{128, 8, 64, 128};
  std::int64_t buffer_len = 16;
  int repeats = 10;
};

struct Row {
  std::int64_t batch = 0;
  Dtype state = Dtype::float32;
  Timing exact, replay;  // microseconds a step
  double exact_bytes = 0.0, replay_bytes = 0.0;
};

constexpr std::size_t kRotatedBytes = 600'000'000;  // ten times the L2 cache of the largest GPU here
constexpr std::size_t kPatternFloats = std::size_t{1} << 22;

// Memory of one case, filled with a normal distribution's values.
class Case {
 public:
  Case(BenchDevice& device, const Options& options, std::int64_t batch, Dtype state)
      : device_(device), options_(options), batch_(batch), state_dtype_(state) {
    form_.buffer_len = options.buffer_len;
    form_.route = options.route == "output_only" ? mamba2::Route::output_only : mamba2::Route::state_and_output;
    form_.flush = options.flush == "summed" ? mamba2::Flush::summed : mamba2::Flush::sequential;
    form_.ring_dtype = parse_dtype(options.ring).value();
    const mamba2::Shape& s = options.shape;
    const std::size_t state_bytes = bytes_of(s.num_heads * s.head_dim * s.state_size, state);
    copies_ = std::max<std::size_t>(1, (kRotatedBytes + state_bytes - 1) / state_bytes);
    for (std::size_t i = 0; i < copies_; ++i) {
      states_.push_back(normal(s.num_heads * s.head_dim * s.state_size, state));
      rings_.push_back({normal(s.num_heads * form_.buffer_len * s.head_dim, form_.ring_dtype),
                        normal(s.num_groups * form_.buffer_len * s.state_size, form_.ring_dtype),
                        static_cast<float*>(device.allocate(bytes_of(s.num_heads * form_.buffer_len, Dtype::float32))),
                        nullptr});
    }
    make_inputs();
    make_cursors();
  }

  Row run(int repeats) {
    Row row{batch_, state_dtype_, {}, {}, exact_bytes(), replay_bytes()};
    const mamba2::Block block{batch_, 1, nullptr};
    const auto per_step = [](Timing t, double steps) { return Timing{t.median / steps, t.min / steps, t.max / steps}; };
    row.exact =
        per_step(device_.time(
                     [&] {
                       for (std::size_t i = 0; i < copies_; ++i) {
                         mamba2::exact(device_.device(), options_.shape, block, in_, parameters_, state(i), out_);
                       }
                     },
                     repeats),
                 static_cast<double>(copies_));
    row.replay = per_step(device_.time([&] { ring_cycle(block); }, repeats),
                          static_cast<double>(copies_) * static_cast<double>(form_.buffer_len));
    return row;
  }

 private:
  void ring_cycle(const mamba2::Block& block) {
    for (std::int64_t position = 0; position < form_.buffer_len; ++position) {
      for (std::size_t i = 0; i < copies_; ++i) {
        mamba2::Ring ring = rings_[i];
        ring.cursor = cursors_[static_cast<std::size_t>(position)];
        mamba2::replay(device_.device(), options_.shape, form_, block, in_, parameters_, state(i), ring, out_);
      }
    }
  }

  std::size_t bytes_of(std::int64_t per_row, Dtype dtype) const {
    return static_cast<std::size_t>(batch_ * per_row) * dtype_size(dtype);
  }

  // One pattern of random values, repeated; every copy begins with it.
  void* normal(std::int64_t per_row, Dtype dtype) {
    const std::size_t bytes = bytes_of(per_row, dtype);
    auto* memory = static_cast<std::byte*>(device_.allocate(bytes));
    const std::vector<std::byte>& values = pattern(dtype);
    std::size_t filled = std::min(bytes, values.size());
    device_.upload(memory, values.data(), filled);
    while (filled < bytes) {
      const std::size_t more = std::min(filled, bytes - filled);
      device_.copy(memory + filled, memory, more);
      filled += more;
    }
    return memory;
  }

  static const std::vector<std::byte>& pattern(Dtype dtype) {
    static std::vector<std::byte> patterns[3];
    std::vector<std::byte>& values = patterns[static_cast<std::size_t>(dtype)];
    if (!values.empty()) return values;
    std::mt19937 random(1);
    std::normal_distribution<float> standard;
    values.resize(kPatternFloats * dtype_size(dtype));
    for (std::size_t i = 0; i < kPatternFloats; ++i)
      storage::store(values.data(), i, standard(random), {dtype, Overflow::infinity});
    return values;
  }

  void make_inputs() {
    const mamba2::Shape& s = options_.shape;
    const std::int64_t x_width = s.num_heads * s.head_dim;
    const std::int64_t B_width = s.num_groups * s.state_size;
    in_ = {normal(x_width, Dtype::bfloat16),
           normal(B_width, Dtype::bfloat16),
           normal(B_width, Dtype::bfloat16),
           normal(s.num_heads, Dtype::bfloat16),
           x_width,
           B_width,
           B_width,
           s.num_heads,
           Dtype::bfloat16};
    out_ = {device_.allocate(bytes_of(x_width, Dtype::bfloat16)), x_width, Dtype::bfloat16};
    std::mt19937 random(2);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    std::vector<float> values(static_cast<std::size_t>(s.num_heads));
    const auto per_head = [&] {
      for (float& value : values) value = uniform(random);
      auto* memory = static_cast<float*>(device_.allocate(values.size() * sizeof(float)));
      device_.upload(memory, values.data(), values.size() * sizeof(float));
      return memory;
    };
    parameters_ = {per_head(), per_head(), per_head()};
  }

  void make_cursors() {
    for (std::int64_t position = 0; position < form_.buffer_len; ++position) {
      const std::vector<std::int32_t> values(static_cast<std::size_t>(batch_), static_cast<std::int32_t>(position));
      auto* memory = static_cast<std::int32_t*>(device_.allocate(values.size() * sizeof(std::int32_t)));
      device_.upload(memory, values.data(), values.size() * sizeof(std::int32_t));
      cursors_.push_back(memory);
    }
  }

  mamba2::State state(std::size_t copy) const {
    return {states_[copy], {state_dtype_, Overflow::infinity}, batch_, nullptr};
  }

  double state_bytes() const {
    const mamba2::Shape& s = options_.shape;
    return static_cast<double>(bytes_of(s.num_heads * s.head_dim * s.state_size, state_dtype_));
  }
  double token_bytes() const {  // x, B, C, dt in, y out
    const mamba2::Shape& s = options_.shape;
    return static_cast<double>(
        bytes_of(2 * s.num_heads * s.head_dim + 2 * s.num_groups * s.state_size + s.num_heads, Dtype::bfloat16));
  }
  double exact_bytes() const { return 2.0 * state_bytes() + token_bytes(); }
  // A cycle of L steps reads the state L times and writes it once, reads 0 + 1 + … + (L - 1) entries and writes L - 1.
  double replay_bytes() const {
    const mamba2::Shape& s = options_.shape;
    const auto L = static_cast<double>(form_.buffer_len);
    const double entry =
        static_cast<double>(bytes_of(s.num_heads * s.head_dim + s.num_groups * s.state_size, form_.ring_dtype) +
                            bytes_of(s.num_heads, Dtype::float32));
    return state_bytes() * (1.0 + 1.0 / L) + entry * ((L - 1.0) / 2.0 + (L - 1.0) / L) + token_bytes();
  }

  BenchDevice& device_;
  const Options& options_;
  std::int64_t batch_;
  Dtype state_dtype_;
  mamba2::ReplayForm form_;
  std::size_t copies_ = 0;
  std::vector<void*> states_;
  std::vector<mamba2::Ring> rings_;
  std::vector<std::int32_t*> cursors_;
  mamba2::Inputs in_;
  mamba2::Parameters parameters_;
  mamba2::Output out_;
};

std::string span(const Timing& t) { return fmt::format("{:9.2f} [{:.2f}, {:.2f}]", t.median, t.min, t.max); }

void print(const Row& row, double bandwidth) {
  const auto rate = [&](double bytes, const Timing& t) {
    const double per_second = bytes / t.median * 1e6;
    return fmt::format("{:6.3f} {:3.0f}%", per_second / 1e12, 100.0 * per_second / bandwidth);
  };
  std::cout << fmt::format("{:5} {:9} {:30} {:>11}  {:30} {:>11} {:6.2f}x\n", row.batch, dtype_name(row.state),
                           span(row.exact), rate(row.exact_bytes, row.exact), span(row.replay),
                           rate(row.replay_bytes, row.replay), row.exact.median / row.replay.median)
            << std::flush;
}

nlohmann::json to_json(const Row& row) {
  const auto timing = [](const Timing& t, double bytes) {
    return nlohmann::json{{"microseconds", t.median}, {"min", t.min}, {"max", t.max}, {"bytes", bytes}};
  };
  return {{"batch", row.batch},
          {"state", dtype_name(row.state)},
          {"exact", timing(row.exact, row.exact_bytes)},
          {"replay", timing(row.replay, row.replay_bytes)}};
}

void write_json(const Options& options, const BenchDevice& device, double bandwidth, const std::vector<Row>& rows) {
  nlohmann::json result{{"device", device.name()},
                        {"read_bytes_per_second", bandwidth},
                        {"num_heads", options.shape.num_heads},
                        {"num_groups", options.shape.num_groups},
                        {"head_dim", options.shape.head_dim},
                        {"state_size", options.shape.state_size},
                        {"buffer_len", options.buffer_len},
                        {"route", options.route},
                        {"flush", options.flush},
                        {"ring", options.ring},
                        {"repeats", options.repeats},
                        {"rows", nlohmann::json::array()}};
  for (const Row& row : rows) result["rows"].push_back(to_json(row));
  std::ofstream file(options.json);
  file << result.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
}

void run(const Options& options) {
  const std::unique_ptr<BenchDevice> device = options.device == "cpu" ? make_cpu_device() : make_cuda_device();
  const double bandwidth = device->read_bandwidth();
  std::cout << fmt::format("{}, plain reads {:.3f} TB/s; {} heads x {} x {}, {} groups, L {}, {}, {}, ring {}\n",
                           device->name(), bandwidth / 1e12, options.shape.num_heads, options.shape.head_dim,
                           options.shape.state_size, options.shape.num_groups, options.buffer_len, options.route,
                           options.flush, options.ring);
  std::cout << fmt::format("{:>5} {:9} {:30} {:>11}  {:30} {:>11} {:>7}\n", "batch", "state", "exact us [min, max]",
                           "TB/s share", "replay us [min, max]", "TB/s share", "speedup");
  std::vector<Row> rows;
  for (const std::string& name : options.states) {
    for (const std::int64_t batch : options.batches) {
      rows.push_back(Case(*device, options, batch, parse_dtype(name).value()).run(options.repeats));
      device->release();
      print(rows.back(), bandwidth);
    }
  }
  if (!options.json.empty()) write_json(options, *device, bandwidth, rows);
}

}  // namespace
}  // namespace replayeval::bench

int main(int argc, char** argv) {
  replayeval::bench::Options options;
  CLI::App app("Time of one Mamba-2 decode step, exact against replay, over whole ring cycles");
  app.add_option("--device", options.device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--batch", options.batches, "Batch sizes")->check(CLI::PositiveNumber)->delimiter(',');
  const CLI::IsMember state_types({"float32", "bfloat16", "float16"});
  app.add_option("--state", options.states, "State storage types")->check(state_types)->delimiter(',');
  app.add_option("--ring", options.ring, "Ring storage type")->check(CLI::IsMember({"float32", "bfloat16"}));
  app.add_option("--route", options.route)->check(CLI::IsMember({"output_only", "state_and_output"}));
  app.add_option("--flush", options.flush)->check(CLI::IsMember({"summed", "sequential"}));
  app.add_option("--heads", options.shape.num_heads);
  app.add_option("--groups", options.shape.num_groups);
  app.add_option("--head-dim", options.shape.head_dim);
  app.add_option("--state-size", options.shape.state_size);
  app.add_option("--buffer-len", options.buffer_len);
  app.add_option("--repeats", options.repeats, "Timed runs; the median is shown")->check(CLI::PositiveNumber);
  app.add_option("--json", options.json, "Also write the figures to this file");
  try {
    app.parse(argc, argv);
    replayeval::bench::run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 3;
  } catch (const std::exception& error) {
    std::cerr << "replayeval_kernel_bench: " << error.what() << '\n';
    return 3;
  }
  return 0;
}
