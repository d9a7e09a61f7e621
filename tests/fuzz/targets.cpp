#include "tests/fuzz/targets.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "datasets/error.h"
#include "datasets/json_node.h"
#include "datasets/tasks/harness_sample.h"
#include "datasets/tasks/plain_task.h"
#include "datasets/tasks/sample_writer.h"
#include "datasets/tasks/task_metrics.h"
#include "datasets/tokenizer_json.h"
#include "eval/checkpoint/checkpoint.h"
#include "eval/checkpoint/json_text.h"
#include "eval/checkpoint/safetensors.h"
#include "eval/checkpoint/shard_index.h"
#include "eval/model/bamba_config.h"
#include "eval/model/falcon_h1_config.h"
#include "eval/model/granitemoehybrid_config.h"
#include "eval/model/kimi_linear_config.h"
#include "eval/model/mamba2_config.h"
#include "eval/model/nemotron_h_config.h"
#include "eval/model/olmo_hybrid_config.h"
#include "eval/model/qwen3_5_config.h"
#include "eval/model/qwen3_5_moe_config.h"
#include "eval/model/qwen3_next_config.h"
#include "eval/model/zamba2_config.h"
#include "reports/bench_file.h"
#include "reports/html/report.h"
#include "reports/results_io.h"

namespace replayeval::fuzz {
namespace {

std::string_view text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

// A file of this header, with `data_size` zeros behind it.
std::vector<std::byte> safetensors_file(Input header, std::size_t data_size) {
  std::vector<std::byte> file(8 + header.size() + data_size);
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(header.size() >> (8 * i));
  std::memcpy(file.data() + 8, header.data(), header.size());
  return file;
}

// Reads what the views promise, so that a view beyond the file shows.
void touch(const std::vector<TensorView>& tensors) {
  static std::atomic<unsigned> sink = 0;  // so that the reads happen
  for (const TensorView& view : tensors)
    for (const std::byte byte : view.bytes) sink += std::to_integer<unsigned>(byte);
}

std::array<Input, 3> parts_of(Input input) {
  std::array<Input, 3> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const void* zero = i + 1 == parts.size() || input.empty() ? nullptr : std::memchr(input.data(), 0, input.size());
    const std::size_t size =
        zero == nullptr ? input.size() : static_cast<std::size_t>(static_cast<const std::byte*>(zero) - input.data());
    parts[i] = input.first(size);
    input = input.subspan(std::min(input.size(), size + 1));
  }
  return parts;
}

// Every reader of a config.json, by its model_type.
const std::map<std::string, void (*)(const Checkpoint&)>& config_readers() {
  static const std::map<std::string, void (*)(const Checkpoint&)> readers = {
      {"bamba", [](const Checkpoint& checkpoint) { read_bamba_config(checkpoint); }},
      {"falcon_h1", [](const Checkpoint& checkpoint) { read_falcon_h1_config(checkpoint); }},
      {"granitemoehybrid", [](const Checkpoint& checkpoint) { read_granitemoehybrid_config(checkpoint); }},
      {"kimi_linear", [](const Checkpoint& checkpoint) { read_kimi_linear_config(checkpoint); }},
      {"mamba2", [](const Checkpoint& checkpoint) { read_mamba2_config(checkpoint); }},
      {"nemotron_h", [](const Checkpoint& checkpoint) { read_nemotron_h_config(checkpoint); }},
      {"olmo_hybrid", [](const Checkpoint& checkpoint) { read_olmo_hybrid_config(checkpoint); }},
      {"qwen3_5", [](const Checkpoint& checkpoint) { read_qwen3_5_config(checkpoint); }},
      {"qwen3_5_moe", [](const Checkpoint& checkpoint) { read_qwen3_5_moe_config(checkpoint); }},
      {"qwen3_next", [](const Checkpoint& checkpoint) { read_qwen3_next_config(checkpoint); }},
      {"zamba2", [](const Checkpoint& checkpoint) { read_zamba2_config(checkpoint); }},
  };
  return readers;
}

// tokenizer.json is hashed where it lies, so that a file has to lie there.
const std::filesystem::path& tokenizer_file() {
  static const std::filesystem::path file = [] {
    std::string folder = (std::filesystem::temp_directory_path() / "replayeval-fuzz-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    std::ofstream(folder + "/tokenizer.json") << "{}";
    return std::filesystem::path(folder) / "tokenizer.json";
  }();
  return file;
}

// As if a model had answered: the same to every request.
void score_and_write(const tasks::TaskDocument& document, const tasks::TaskSettings& settings) {
  tasks::DocumentResponse response;
  if (document.type == tasks::RequestType::generate_until)
    response.texts.assign(1, "The answer is 42.");
  else
    response.scores.assign(document.requests.size(), {-1.5, true});
  for (const tasks::FilterScores& scores : tasks::TaskScorer(settings, "fuzz.jsonl").score(document, response))
    tasks::write_python_json(tasks::sample_row(document, response, scores));
}

constexpr std::array<Target, 6> all = {{{"safetensors_header", &safetensors_header},
                                        {"shard_index", &shard_index},
                                        {"model_config", &model_config},
                                        {"tokenizer_json", &tokenizer_json},
                                        {"task_rows", &task_rows},
                                        {"bench_file", &bench_file}}};

}  // namespace

std::span<const Target> targets() { return all; }

void safetensors_header(Input input) {
  if (input.size() < 2) return;
  const bool whole = (std::to_integer<unsigned>(input[0]) & 1U) == 0;
  const Input rest = input.subspan(2);
  const std::vector<std::byte> file = whole ? std::vector<std::byte>(rest.begin(), rest.end())
                                            : safetensors_file(rest, std::to_integer<std::size_t>(input[1]) * 8);
  const AllocationLimit limit(file.size());
  try {
    touch(read_safetensors(file, "fuzz.safetensors"));
  } catch (const CheckpointError&) {
  }
}

void shard_index(Input input) {
  const auto [index, first, second] = parts_of(input);
  const AllocationLimit limit(input.size());
  try {
    const ShardOfTensor shard_of = parse_shard_index(text_of(index), "model.safetensors.index.json");
    const std::vector<std::byte> one = safetensors_file(first, 64), two = safetensors_file(second, 64);
    const auto tensors =
        merge_shards({read_safetensors(one, "model-1.safetensors"), read_safetensors(two, "model-2.safetensors")});
    check_against_index(tensors, shard_of, "model.safetensors.index.json");
  } catch (const CheckpointError&) {
  }
}

void model_config(Input input) {
  const AllocationLimit limit(input.size());
  try {
    const Checkpoint checkpoint = Checkpoint::of_config(parse_json_text(text_of(input), "config.json"), "config.json");
    const auto type = checkpoint.config().find("model_type");
    if (type == checkpoint.config().end() || !type->is_string()) return;
    const auto reader = config_readers().find(type->get<std::string>());
    if (reader != config_readers().end()) reader->second(checkpoint);
  } catch (const CheckpointError&) {
  }
}

void tokenizer_json(Input input) {
  const std::filesystem::path& file = tokenizer_file();
  const AllocationLimit limit(input.size());
  try {
    const auto document = datasets::parse_json(std::string(text_of(input)), file.string());
    const auto tokenizer = datasets::make_json_tokenizer(document, file);
    tokenizer->decode(tokenizer->encode("Ein Test: 12 + 3, \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x99\x82\n\t<s>"));
  } catch (const datasets::DataError&) {
  }
}

void task_rows(Input input) {
  const AllocationLimit limit(input.size());
  tasks::HarnessSampleReader harness({});
  tasks::PlainTaskReader plain({});
  std::istringstream lines{std::string(text_of(input))};
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    try {
      const tasks::OrderedJson row = tasks::read_python_json(line, "fuzz.jsonl");
      const bool is_harness = tasks::is_harness_sample(row);
      score_and_write(is_harness ? harness.read(row, number, "fuzz.jsonl") : plain.read(row, number, 1, "fuzz.jsonl"),
                      is_harness ? harness.settings() : plain.settings());
    } catch (const datasets::DataError&) {
    }
  }
}

void bench_file(Input input) {
  const AllocationLimit limit(input.size());
  try {
    const nlohmann::json object = nlohmann::json::parse(text_of(input), nullptr, false);
    if (object.is_discarded()) return;
    reports::HtmlOptions options;
    options.benches.push_back({"fuzz.json", reports::bench_from_json(object, "fuzz.json")});
    reports::html_report({}, options);
  } catch (const reports::ResultsError&) {
  }
}

}  // namespace replayeval::fuzz
