#include "reports/bench_file.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <initializer_list>

#include "reports/results_io.h"

namespace replayeval::reports {
namespace {

using nlohmann::json;

// A value in a file, and where.
class Place {
 public:
  Place(const json& value, std::string file, json::json_pointer pointer = json::json_pointer())
      : value_(value), file_(std::move(file)), pointer_(std::move(pointer)) {}

  Place at(const std::string& key) const {
    if (!value_.is_object()) fail("expected an object");
    if (!value_.contains(key)) fail(fmt::format("key \"{}\" is missing", key));
    return {value_.at(key), file_, pointer_ / key};
  }
  bool has(const std::string& key) const { return value_.is_object() && value_.contains(key); }
  std::vector<Place> items() const {
    if (!value_.is_array()) fail("expected a list");
    std::vector<Place> places;
    for (std::size_t i = 0; i < value_.size(); ++i) places.emplace_back(value_[i], file_, pointer_ / i);
    return places;
  }
  std::string text() const {
    if (!value_.is_string()) fail("expected a text");
    return value_.get<std::string>();
  }
  std::string text_or(const std::string& key, const std::string& otherwise) const {
    return value_.contains(key) ? at(key).text() : otherwise;
  }
  // A text of an object of the file; "" where either is not there.
  std::string text_of(const std::string& object, const std::string& key) const {
    if (!has(object)) return "";
    const Place inner = at(object);
    if (!inner.value_.is_object()) inner.fail("expected an object");
    return inner.text_or(key, "");
  }
  std::map<std::string, std::int64_t> counts_at(std::initializer_list<const char*> keys) const {
    std::map<std::string, std::int64_t> all;
    for (const char* key : keys)
      if (has(key)) all.emplace(key, at(key).count());
    return all;
  }
  const json& value() const { return value_; }
  double positive() const {
    const double number = value_.is_number() ? value_.get<double>() : -1.0;
    if (!std::isfinite(number) || number <= 0.0) fail("expected a number above 0");
    return number;
  }
  std::optional<double> positive_or(const std::string& key) const {
    return value_.contains(key) ? std::optional(at(key).positive()) : std::nullopt;
  }
  std::optional<bool> flag_or(const std::string& key) const {
    if (!value_.contains(key)) return std::nullopt;
    const Place place = at(key);
    if (!place.value_.is_boolean()) place.fail("expected true or false");
    return place.value_.get<bool>();
  }
  double share() const {
    const double number = value_.is_number() ? value_.get<double>() : -1.0;
    if (!(number >= 0.0 && number <= 1.0)) fail("expected a number from 0 to 1");
    return number;
  }
  std::map<std::string, double> shares() const {
    if (!value_.is_object()) fail("expected an object");
    std::map<std::string, double> all;
    for (const auto& [key, value] : value_.items()) all.emplace(key, Place{value, file_, pointer_ / key}.share());
    return all;
  }
  std::int64_t count() const {
    if (!value_.is_number_integer() || value_.get<std::int64_t>() < 0) fail("expected a whole number from 0 on");
    return value_.get<std::int64_t>();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const std::string pointer = pointer_.to_string();
    throw ResultsError(fmt::format("{}: {}: {}", file_, pointer.empty() ? "/" : pointer, what));
  }

  const json& value_;
  std::string file_;
  json::json_pointer pointer_;
};

KernelBench::Timing timing_of(const Place& place) {
  return {.microseconds = place.at("microseconds").positive(),
          .low = place.at("min").positive(),
          .high = place.at("max").positive(),
          .bytes = place.at("bytes").positive()};
}

KernelBench kernel_bench(const Place& file) {
  KernelBench bench{.family = file.at("family").text(),
                    .device = file.at("device").text(),
                    .ring = file.at("ring").text(),
                    .ring_form = file.at("ring_form").text(),
                    .route = file.at("route").text(),
                    .flush = file.at("flush").text(),
                    .shape = file.counts_at({"head_dim", "state_size", "num_heads", "num_groups", "key_dim",
                                             "value_dim", "num_key_heads", "num_value_heads"}),
                    .buffer_len = file.at("buffer_len").count(),
                    .read_bytes_per_second = file.at("read_bytes_per_second").positive(),
                    .rows = {}};
  for (const Place& row : file.at("rows").items())
    bench.rows.push_back(
        {.batch = row.at("batch").count(),
         .state = row.at("state").text(),
         .exact = timing_of(row.at("exact")),
         .replay = timing_of(row.at("replay")),
         .mixed = row.has("replay_mixed") ? std::optional(timing_of(row.at("replay_mixed"))) : std::nullopt});
  return bench;
}

// The GPU's name where the run had one, else the processor's.
std::string device_of(const Place& environment) {
  return environment.has("gpu") ? environment.at("gpu").at("name").text() : environment.text_or("cpu", "");
}

ModelBench::Row step_row(const Place& row) {
  const Place step = row.at("step_seconds");
  return {.arm = row.at("arm").text(),
          .batch = row.at("batch").count(),
          .step_seconds = step.at("median").positive(),
          .low = step.at("low").positive(),
          .high = step.at("high").positive(),
          .tokens_per_second = row.at("tokens_per_second").positive(),
          .mixer_share = row.at("mixer_share").share(),
          .cache_bytes = row.at("cache_bytes").count(),
          .predicted_seconds = row.positive_or("predicted_seconds"),
          .cuda_graphs = row.flag_or("cuda_graphs")};
}

ModelBench model_bench(const Place& file) {
  ModelBench bench{.model_type = file.at("model_type").text(),
                   .baseline = file.at("baseline").text(),
                   .device = device_of(file.at("environment")),
                   .parameters = file.at("parameters").count(),
                   .context = file.at("context").count(),
                   .arms = {},
                   .rows = {}};
  for (const Place& arm : file.at("arms").items()) {
    static_cast<void>(arm.at("name").text());  // every arm has one
    bench.arms.push_back(arm.value());
  }
  if (file.has("scoring")) {
    const Place scoring = file.at("scoring");
    bench.scoring = ModelBench::Scoring{.sequences = scoring.at("sequences").count(),
                                        .tokens = scoring.at("tokens").count(),
                                        .block = scoring.at("block").count(),
                                        .tokens_per_second = scoring.at("tokens_per_second").positive(),
                                        .share = scoring.at("share").shares()};
    return bench;
  }
  for (const Place& row : file.at("rows").items()) bench.rows.push_back(step_row(row));
  return bench;
}

}  // namespace

std::optional<double> ModelBench::speed_ratio(const Row& row) const {
  for (const Row& other : rows)
    if (other.batch == row.batch && other.arm == baseline) return other.step_seconds / row.step_seconds;
  return std::nullopt;
}

std::variant<KernelBench, ModelBench> bench_from_json(const json& object, const std::string& place) {
  const Place file(object, place);
  if (object.is_object() && object.contains("part"))
    throw ResultsError(place + ": /part: times of a part beside the recurrence; reports show the recurrence's alone");
  if (object.is_object() && object.contains("family")) return kernel_bench(file);
  if (object.is_object() && object.contains("model_type")) return model_bench(file);
  throw ResultsError(place + ": expected what `bench kernels` or `bench model` writes with --json");
}

BenchOrigin origin_from_json(const json& object, const std::string& place) {
  const Place file(object, place);
  return {.version = file.text_of("tool", "version"),
          .git = file.text_of("tool", "git"),
          .build = file.text_of("tool", "build"),
          .date = file.text_of("environment", "date")};
}

BenchFile load_bench(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file))
    throw ResultsError(file.string() + ": no such file; expected what `bench kernels` or `bench model` wrote");
  std::ifstream stream(file, std::ios::binary);
  const json object = json::parse(stream, nullptr, false);
  if (object.is_discarded()) throw ResultsError(file.string() + ": is not JSON");
  return {file.filename().string(), bench_from_json(object, file.string()), origin_from_json(object, file.string())};
}

double roofline_share(const KernelBench& bench, const KernelBench::Timing& timing) {
  return timing.bytes / (timing.microseconds * 1e-6) / bench.read_bytes_per_second;
}

}  // namespace replayeval::reports
