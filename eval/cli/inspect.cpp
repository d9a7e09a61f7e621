#include "eval/cli/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "eval/checkpoint/checkpoint.h"
#include "eval/cli/inspect_description.h"

namespace replayeval {
namespace {

using nlohmann::ordered_json;

struct Arguments {
  std::string checkpoint, memory;
  InspectOptions options;
  bool json = false, no_hash = false;
};

constexpr std::int64_t shown_buffer_len = 16;  // the published default

// "80GiB", "80GB", "512MiB", or plain bytes. Throws CLI::ValidationError.
std::int64_t parse_memory(const std::string& text) {
  static const std::map<std::string, double> units = {{"", 1},      {"B", 1},        {"MB", 1e6},     {"GB", 1e9},
                                                      {"TB", 1e12}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, end), unit = end == std::string::npos ? "" : text.substr(end);
  const auto found = units.find(unit);
  if (found == units.end() || number.empty() || number.size() > 15 || number.find('.') != number.rfind('.') ||
      number == ".")
    throw CLI::ValidationError("--memory", "found '" + text + "', expected a size such as 80GiB");
  const double bytes = std::stod(number) * found->second;
  if (bytes < 1 || bytes > 0x1p60)
    throw CLI::ValidationError("--memory", "found '" + text + "', expected a size such as 80GiB");
  return std::llround(bytes);
}

std::string bytes_text(const ordered_json& bytes) {
  const auto value = bytes.get<double>();
  if (value >= 1LL << 30) return fmt::format("{:.2f} GiB", value / (1LL << 30));
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

// "48 channels, each of 3 groups by itself", and whether transformers' inference takes the whole width.
std::string norm_text(const ordered_json& mamba) {
  const auto at = [&](const char* key) { return mamba[key].get<std::int64_t>(); };
  const auto& sizes = mamba["norm_group_size"];
  const std::int64_t width = at("num_heads") * at("head_dim"), size = sizes["published"].get<std::int64_t>();
  if (size == 0) return "none: outputs are only gated";
  std::string text = size == width ? fmt::format("over all {} channels", width)
                                   : fmt::format("over {} channels, each of {} groups by itself", size, width / size);
  if (sizes["transformers"] != sizes["published"])
    text += fmt::format("; over all {} with norm_span: transformers", width);
  return text;
}

void print_delta_rule(const ordered_json& delta) {
  fmt::print("  delta rule   {} heads of {} for keys, {} of {} for values, convolution of {}\n",
             delta["num_key_heads"].dump(), delta["key_dim"].dump(), delta["num_value_heads"].dump(),
             delta["value_dim"].dump(), delta["conv_kernel"].dump());
}

void print_mamba(const ordered_json& mamba) {
  if (mamba["layers"] == 0) return;
  fmt::print("  mamba2       {} heads of {}, state size {}, {} groups, convolution of {}\n", mamba["num_heads"].dump(),
             mamba["head_dim"].dump(), mamba["state_size"].dump(), mamba["num_groups"].dump(),
             mamba["conv_kernel"].dump());
  fmt::print("  gated norm   {}\n", norm_text(mamba));
}

void print_experts(const ordered_json& experts) {
  fmt::print("  experts      {} of {} a token, MLP {}", experts["chosen"].dump(), experts["experts"].dump(),
             experts["intermediate_size"].dump());
  if (experts["latent_size"] != 0) fmt::print(" on a latent width of {}", experts["latent_size"].dump());
  if (experts["shared_intermediate_size"] != 0)
    fmt::print(", shared MLP {}", experts["shared_intermediate_size"].dump());
  fmt::print("\n");
}

void print_parts(const ordered_json& all) {
  fmt::print("  layers       {}\n", layers_text(all["layers"]));
  fmt::print("  width        hidden {}, {}vocabulary {}\n", all["hidden_size"].dump(),
             all["intermediate_size"] == 0 ? "" : fmt::format("MLP {}, ", all["intermediate_size"].dump()),
             all["vocab_size"].dump());
  print_mamba(all["mamba2"]);
  if (all.contains("delta_rule")) print_delta_rule(all["delta_rule"]);
  const auto& attention = all["attention"];
  if (attention["layers"] != 0)
    fmt::print("  attention    {} heads of {}, {} for keys and values\n", attention["num_heads"].dump(),
               attention["head_dim"].dump(), attention["num_kv_heads"].dump());
  if (all.contains("experts")) print_experts(all["experts"]);
}

void print_architecture(const ordered_json& all) {
  fmt::print("{}: {}, {} parameters\n", all["checkpoint"].get<std::string>(), all["model_type"].get<std::string>(),
             all["parameters"].get<std::int64_t>());
  if (all["active_parameters"] != all["parameters"])
    fmt::print("  active       {} parameters a token\n", all["active_parameters"].get<std::int64_t>());
  if (all.contains("sha256")) fmt::print("  sha256       {}\n", all["sha256"].get<std::string>());
  print_parts(all);
  fmt::print("  in memory    {}\n", bytes_text(all["weight_bytes"]));
  if (!all["has_weights"].get<bool>()) fmt::print("  no weights here: sizes are config.json's\n");
  if (!all["ignored_tensors"].empty())
    fmt::print("  ignored      {} scales of float8 activations or caches\n", all["ignored_tensors"].size());
  for (const auto& [dtype, total] : all["tensors"].items())
    fmt::print("  stored {:<5} {} tensors, {}\n", dtype, total["tensors"].dump(), bytes_text(total["bytes"]));
}

void print_memory(const ordered_json& memory, const std::string& context) {
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
  row(fmt::format("KV, {} tokens", context).c_str(), memory["kv"]);
  if (memory["kv_per_token"]["float32"] != 0)
    fmt::print("  (keys and values take memory as a sequence grows, in whole pages of {} tokens)\n",
               memory["kv_page_tokens"].dump());
}

void print_pairs() {
  for (const Dtype state : inspected_states)
    for (const Dtype ring : inspected_rings)
      fmt::print("{:>20}", fmt::format("{}/{}", dtype_name(state), dtype_name(ring)));
}

// A line for each buffer length, a column for each batch. State float32, ring as computed; --json has all pairs.
void print_step(const ordered_json& all) {
  const std::string compute = all["traffic"]["compute_dtype"].get<std::string>();
  const std::string ring = compute == "bfloat16" ? compute : "float32";
  fmt::print(
      "\nPredicted traffic of whole steps, replay / exact, {} tokens of context, float32 / {}; weights read once a "
      "step:\n{:>6}",
      all["step"]["context"].dump(), ring, "L");
  for (const std::int64_t batch : inspected_batches) fmt::print("{:>12}", fmt::format("batch {}", batch));
  for (const auto& row : all["traffic"]["rows"]) {
    if (row["state"] != "float32" || row["ring"] != ring) continue;
    fmt::print("\n{:>6}", row["buffer_len"].dump());
    for (const std::int64_t batch : inspected_batches)
      fmt::print("{:>12.3f}", row["step_ratio"][std::to_string(batch)].get<double>());
  }
  fmt::print("\n");
}

void print_fit(const ordered_json& fit) {
  fmt::print("\nSequences of {} tokens in {} beside weights of {}:\n{:>22}", fit["context"].dump(),
             bytes_text(fit["memory_bytes"]), bytes_text(fit["weight_bytes"]), "state");
  for (const Dtype state : inspected_states) fmt::print("{:>12}", dtype_name(state));
  fmt::print("\n{:>22}", "exact");
  for (const Dtype state : inspected_states)
    fmt::print("{:>12}", fit["sequences"]["exact"][std::string(dtype_name(state))].dump());
  for (const Dtype ring : inspected_rings) {
    fmt::print("\n{:>22}", fmt::format("L = {}, {} ring", shown_buffer_len, dtype_name(ring)));
    for (const Dtype state : inspected_states)
      fmt::print("{:>12}", fit["sequences"]["replay"][std::string(dtype_name(state))][std::string(dtype_name(ring))]
                              [std::to_string(shown_buffer_len)]
                                  .dump());
  }
  fmt::print("\n");
}

void print_traffic(const ordered_json& traffic) {
  fmt::print("\nPredicted recurrence traffic, replay / exact (inputs and outputs in {}):\n{:>6}",
             traffic["compute_dtype"].get<std::string>(), "L");
  print_pairs();
  std::int64_t length = 0;
  for (const auto& row : traffic["rows"]) {
    if (row["buffer_len"] != length) fmt::print("\n{:>6}", (length = row["buffer_len"].get<std::int64_t>()));
    fmt::print("{:>20.3f}", row["ratio"].get<double>());
  }
  fmt::print("\n  (state / ring storage; bytes per token averaged over a cycle of L tokens, flush included)\n");
}

std::string keys_text(const ordered_json& keys) {
  return fmt::format("{}", fmt::join(keys.get<std::vector<std::string>>(), ", "));
}

// With weights if they are there; a config.json alone has none.
Checkpoint open(const std::filesystem::path& path) {
  const auto holds = [&](const char* name) { return std::filesystem::exists(path / name); };
  Checkpoint checkpoint = holds("model.safetensors") || holds("model.safetensors.index.json")
                              ? Checkpoint::open(path)
                              : Checkpoint::open_config(path);
  checkpoint.pass_over_unknown_keys();
  return checkpoint;
}

void inspect(const Arguments& arguments) {
  InspectOptions options = arguments.options;
  options.hash = !arguments.no_hash;
  if (!arguments.memory.empty()) options.memory = parse_memory(arguments.memory);
  const ordered_json all = describe_checkpoint(open(arguments.checkpoint), options);
  if (arguments.json) {
    fmt::print("{}\n", all.dump(2));
    return;
  }
  print_architecture(all);
  print_memory(all["bytes_per_sequence"], all["step"]["context"].dump());
  if (!all["traffic"]["rows"].empty()) {
    print_traffic(all["traffic"]);
    print_step(all);
  }
  print_fit(all["fit"]);
  const auto& keys = all["config_keys"];
  fmt::print("\nconfig.json  read: {}\n             ignored: {}\n", keys_text(keys["read"]),
             keys_text(keys["ignored"]));
  if (!keys["unknown"].empty())
    fmt::print("             unknown: {} (every other command refuses them)\n", keys_text(keys["unknown"]));
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("inspect", "Architecture, bytes per sequence and predicted traffic of a checkpoint");
  command->add_option("checkpoint", arguments->checkpoint, "A Hugging Face checkpoint folder, or a config.json")
      ->required();
  command->add_option("--context", arguments->options.context, "Tokens that a sequence holds (default 4096)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31));
  command->add_option("--memory", arguments->memory,
                      "Memory that sequences are to fit in, such as 141GB (default 80GiB)");
  command->add_flag("--no-hash", arguments->no_hash, "Do not read all weights for the checkpoint's hash");
  command->add_flag("--json", arguments->json, "Print everything as JSON");
  command->callback([arguments] { inspect(*arguments); });
}

}  // namespace replayeval
