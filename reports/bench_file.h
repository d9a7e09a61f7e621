// What `bench kernels --json FILE` and `bench model --json` wrote, as reports use it.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace replayeval::reports {

struct KernelBench {
  struct Timing {
    double microseconds = 0.0, low = 0.0, high = 0.0;
    double bytes = 0.0;  // that a step has to move
  };
  struct Row {
    std::int64_t batch = 0;
    std::string state;  // storage type
    Timing exact, replay;
    std::optional<Timing> mixed = {};  // replay with sequences at all positions of their rings; absent in older files
  };
  std::string family, device, ring, ring_form, route, flush;
  std::map<std::string, std::int64_t> shape = {};  // head_dim, num_heads, ...: what the file says of the layer
  std::int64_t buffer_len = 0;
  double read_bytes_per_second = 0.0;  // measured with plain reads: the roofline
  std::vector<Row> rows;
};

struct ModelBench {
  struct Row {
    std::string arm;
    std::int64_t batch = 0;
    double step_seconds = 0.0, low = 0.0, high = 0.0;
    double tokens_per_second = 0.0, mixer_share = 0.0;
    std::int64_t cache_bytes = 0;                  // of all sequences
    std::optional<double> predicted_seconds = {};  // from the bytes of a step
    std::optional<bool> cuda_graphs = {};          // absent in files of earlier revisions
  };
  // Blocks of given tokens through every arm, as an evaluation does (`bench model --teacher-forced`).
  struct Scoring {
    std::int64_t sequences = 0, tokens = 0, block = 0;
    double tokens_per_second = 0.0;         // each token under every arm
    std::map<std::string, double> share{};  // of the wall clock, by part of a step
  };
  std::string model_type, baseline, device;
  std::int64_t parameters = 0, context = 0;
  std::vector<nlohmann::json> arms;  // as in results.json: name, executor, ...
  std::vector<Row> rows;             // empty where scoring alone was timed
  std::optional<Scoring> scoring{};

  // How much faster than the baseline at the same batch; absent where that was not measured.
  std::optional<double> speed_ratio(const Row& row) const;
};

// What timed a file's figures, and when; "" where an older file does not say.
struct BenchOrigin {
  std::string version, git, build, date;
};

struct BenchFile {
  std::string name;  // of the file
  std::variant<KernelBench, ModelBench> bench;
  BenchOrigin origin = {};
};

// Throws ResultsError naming the file, the place in it (a JSON pointer) and what was expected.
BenchFile load_bench(const std::filesystem::path& file);
std::variant<KernelBench, ModelBench> bench_from_json(const nlohmann::json& object, const std::string& place);
BenchOrigin origin_from_json(const nlohmann::json& object, const std::string& place);

// How much of the measured read bandwidth a step's bytes take.
double roofline_share(const KernelBench& bench, const KernelBench::Timing& timing);

}  // namespace replayeval::reports
