#include "eval/cli/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "eval/checkpoint/checkpoint.h"
#include "eval/model/architecture.h"
#include "eval/model/footprint.h"

namespace replayeval {
namespace {

using nlohmann::ordered_json;

struct Arguments {
  std::string checkpoint;
  bool json = false;
};

constexpr std::array<Dtype, 3> dtypes = {Dtype::float32, Dtype::bfloat16, Dtype::float16};
constexpr std::array<Dtype, 2> ring_dtypes = {Dtype::float32, Dtype::bfloat16};
constexpr std::array<std::int64_t, 7> buffer_lens = {1, 2, 4, 8, 16, 32, 64};
constexpr std::int64_t shown_buffer_len = 16;  // the published default

std::string name_of(Dtype dtype) { return std::string(dtype_name(dtype)); }

ordered_json describe_layers(const Architecture& architecture) {
  ordered_json layers = ordered_json::array();
  for (const LayerKind kind : architecture.layers) layers.push_back(layer_kind_name(kind));
  return layers;
}

ordered_json describe_tensors(const Checkpoint& checkpoint, ordered_json& by_dtype) {
  std::int64_t parameters = 0;
  std::map<std::string, std::array<std::int64_t, 2>> totals;  // dtype -> tensors, bytes
  for (const auto& [name, view] : checkpoint.tensors()) {
    std::int64_t elements = 1;
    for (const std::int64_t size : view.shape) elements *= size;
    parameters += elements;
    ++totals[view.dtype][0];
    totals[view.dtype][1] += static_cast<std::int64_t>(view.bytes.size());
  }
  for (const auto& [dtype, total] : totals) by_dtype[dtype] = {{"tensors", total[0]}, {"bytes", total[1]}};
  return parameters;
}

ordered_json describe_memory(const Architecture& architecture) {
  ordered_json memory;
  for (const Dtype dtype : dtypes) {
    memory["state"][name_of(dtype)] = state_bytes(architecture, dtype);
    memory["conv_state"][name_of(dtype)] = conv_state_bytes(architecture, dtype);
    memory["kv_per_token"][name_of(dtype)] = kv_bytes_per_token(architecture, dtype);
  }
  for (const Dtype dtype : ring_dtypes)
    for (const std::int64_t length : buffer_lens)
      memory["ring"][name_of(dtype)][std::to_string(length)] = ring_bytes(architecture, length, dtype);
  return memory;
}

// One row per buffer length, state type and ring type: bytes per token of both executors and their ratio.
ordered_json describe_traffic(const Architecture& architecture, Dtype compute) {
  ordered_json rows = ordered_json::array();
  if (architecture.count(LayerKind::mamba2) == 0) return rows;
  for (const std::int64_t length : buffer_lens)
    for (const Dtype state : dtypes)
      for (const Dtype ring : ring_dtypes) {
        const double exact = exact_bytes_per_token(architecture, state, compute);
        const double replay = replay_bytes_per_token(architecture, length, state, ring, compute);
        rows.push_back({{"buffer_len", length},
                        {"state", dtype_name(state)},
                        {"ring", dtype_name(ring)},
                        {"exact_bytes_per_token", exact},
                        {"replay_bytes_per_token", replay},
                        {"ratio", replay / exact}});
      }
  return rows;
}

ordered_json describe(const Checkpoint& checkpoint) {
  const Architecture architecture = describe_architecture(checkpoint);
  const Dtype stored = stored_dtype(checkpoint);
  ordered_json by_dtype;
  ordered_json out;
  out["checkpoint"] = checkpoint.folder().string();
  out["sha256"] = checkpoint.sha256();
  out["model_type"] = architecture.model_type;
  out["parameters"] = describe_tensors(checkpoint, by_dtype);
  out["tensors"] = by_dtype;
  out["layers"] = describe_layers(architecture);
  out["vocab_size"] = architecture.vocab_size;
  out["hidden_size"] = architecture.hidden_size;
  out["intermediate_size"] = architecture.intermediate_size;
  out["max_positions"] = architecture.max_positions;
  out["mamba2"] = {{"layers", architecture.count(LayerKind::mamba2)}, {"num_heads", architecture.mamba.num_heads},
                   {"num_groups", architecture.mamba.num_groups},     {"head_dim", architecture.mamba.head_dim},
                   {"state_size", architecture.mamba.state_size},     {"conv_kernel", architecture.conv_kernel}};
  out["attention"] = {{"layers", architecture.count(LayerKind::attention)},
                      {"num_heads", architecture.num_heads},
                      {"num_kv_heads", architecture.num_kv_heads},
                      {"head_dim", architecture.head_dim}};
  out["bytes_per_sequence"] = describe_memory(architecture);
  out["traffic"] = {{"compute_dtype", dtype_name(stored)}, {"rows", describe_traffic(architecture, stored)}};
  out["config_keys"] = {{"read", architecture.keys_read}, {"ignored", architecture.keys_ignored}};
  return out;
}

std::string bytes_text(const ordered_json& bytes) {
  const auto value = bytes.get<double>();
  if (value >= 1 << 20) return fmt::format("{:.1f} MiB", value / (1 << 20));
  return value >= 1 << 10 ? fmt::format("{:.1f} KiB", value / (1 << 10)) : fmt::format("{} B", value);
}

// mamba2 x 6, attention x 2, ...; the order is in --json.
std::string layers_text(const ordered_json& layers) {
  std::map<std::string, int> counts;
  for (const auto& kind : layers) ++counts[kind.get<std::string>()];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [kind, count] : counts) parts.push_back(fmt::format("{} {}", count, kind));
  return fmt::format("{} ({})", layers.size(), fmt::join(parts, ", "));
}

void print_architecture(const ordered_json& all) {
  fmt::print("{}: {}, {} parameters\n", all["checkpoint"].get<std::string>(), all["model_type"].get<std::string>(),
             all["parameters"].get<std::int64_t>());
  fmt::print("  sha256       {}\n", all["sha256"].get<std::string>());
  fmt::print("  layers       {}\n", layers_text(all["layers"]));
  fmt::print("  width        hidden {}, MLP {}, vocabulary {}\n", all["hidden_size"].dump(),
             all["intermediate_size"].dump(), all["vocab_size"].dump());
  const auto& mamba = all["mamba2"];
  fmt::print("  mamba2       {} heads of {}, state size {}, {} groups, convolution of {}\n", mamba["num_heads"].dump(),
             mamba["head_dim"].dump(), mamba["state_size"].dump(), mamba["num_groups"].dump(),
             mamba["conv_kernel"].dump());
  const auto& attention = all["attention"];
  fmt::print("  attention    {} heads of {}, {} for keys and values\n", attention["num_heads"].dump(),
             attention["head_dim"].dump(), attention["num_kv_heads"].dump());
  for (const auto& [dtype, total] : all["tensors"].items())
    fmt::print("  stored {:<5} {} tensors, {}\n", dtype, total["tensors"].dump(), bytes_text(total["bytes"]));
}

void print_memory(const ordered_json& memory) {
  fmt::print("\nBytes per sequence{:>10}{:>16}{:>14}\n", "float32", "bfloat16", "float16");
  const auto row = [&](const char* label, const ordered_json& by_dtype) {
    fmt::print("  {:<16}{:>10}{:>16}{:>14}\n", label, bytes_text(by_dtype["float32"]), bytes_text(by_dtype["bfloat16"]),
               by_dtype.contains("float16") ? bytes_text(by_dtype["float16"]) : "-");
  };
  row("state", memory["state"]);
  const std::string length = std::to_string(shown_buffer_len);
  row(fmt::format("ring, L = {}", length).c_str(),
      {{"float32", memory["ring"]["float32"][length]}, {"bfloat16", memory["ring"]["bfloat16"][length]}});
  row("convolution", memory["conv_state"]);
  row("KV per token", memory["kv_per_token"]);
}

void print_traffic(const ordered_json& traffic) {
  fmt::print("\nPredicted recurrence traffic, replay / exact (inputs and outputs in {}):\n{:>6}",
             traffic["compute_dtype"].get<std::string>(), "L");
  for (const Dtype state : dtypes)
    for (const Dtype ring : ring_dtypes)
      fmt::print("{:>20}", fmt::format("{}/{}", dtype_name(state), dtype_name(ring)));
  std::int64_t length = 0;
  for (const auto& row : traffic["rows"]) {
    if (row["buffer_len"] != length) fmt::print("\n{:>6}", (length = row["buffer_len"].get<std::int64_t>()));
    fmt::print("{:>20.3f}", row["ratio"].get<double>());
  }
  fmt::print("\n  (state / ring storage; bytes per token averaged over a cycle of L tokens, flush included)\n");
}

void inspect(const Arguments& arguments) {
  const ordered_json all = describe(Checkpoint::open(arguments.checkpoint));
  if (arguments.json) {
    fmt::print("{}\n", all.dump(2));
    return;
  }
  print_architecture(all);
  print_memory(all["bytes_per_sequence"]);
  if (!all["traffic"]["rows"].empty()) print_traffic(all["traffic"]);
  const auto& keys = all["config_keys"];
  fmt::print("\nconfig.json  read: {}\n             ignored: {}\n",
             fmt::join(keys["read"].get<std::vector<std::string>>(), ", "),
             fmt::join(keys["ignored"].get<std::vector<std::string>>(), ", "));
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("inspect", "Architecture, bytes per sequence and predicted traffic of a checkpoint");
  command->add_option("checkpoint", arguments->checkpoint, "A Hugging Face checkpoint folder")->required();
  command->add_flag("--json", arguments->json, "Print everything as JSON");
  command->callback([arguments] { inspect(*arguments); });
}

}  // namespace replayeval
