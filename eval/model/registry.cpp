// The architectures, by the model_type of config.json. A new one is a new file and one line here.
#include <array>

#include "eval/checkpoint/json_text.h"
#include "eval/model/architecture.h"
#include "eval/model/bamba.h"
#include "eval/model/falcon_h1.h"
#include "eval/model/granitemoehybrid.h"
#include "eval/model/kimi_linear.h"
#include "eval/model/mamba2.h"
#include "eval/model/model.h"
#include "eval/model/nemotron_h.h"
#include "eval/model/olmo_hybrid.h"
#include "eval/model/qwen3_5.h"
#include "eval/model/qwen3_5_moe.h"
#include "eval/model/qwen3_next.h"
#include "eval/model/registry.h"
#include "eval/model/zamba2.h"

namespace replayeval {
namespace {

struct Entry {
  std::string_view model_type;
  Architecture (*describe)(const Checkpoint&);
  std::unique_ptr<Model> (*load)(const Checkpoint&, const ModelOptions&);
};

constexpr auto entries = std::to_array<Entry>({
    {"bamba", &describe_bamba, &load_bamba},
    {"falcon_h1", &describe_falcon_h1, &load_falcon_h1},
    {"granitemoehybrid", &describe_granitemoehybrid, &load_granitemoehybrid},
    {"kimi_linear", &describe_kimi_linear, &load_kimi_linear},
    {"mamba2", &describe_mamba2, &load_mamba2},
    {"nemotron_h", &describe_nemotron_h, &load_nemotron_h},
    {"olmo_hybrid", &describe_olmo_hybrid, &load_olmo_hybrid},
    {"qwen3_5", &describe_qwen3_5, &load_qwen3_5},
    {"qwen3_5_moe", &describe_qwen3_5_moe, &load_qwen3_5_moe},
    {"qwen3_5_moe_text", &describe_qwen3_5_moe, &load_qwen3_5_moe},
    {"qwen3_5_text", &describe_qwen3_5, &load_qwen3_5},
    {"qwen3_next", &describe_qwen3_next, &load_qwen3_next},
    {"zamba2", &describe_zamba2, &load_zamba2},
});

const Entry& find_entry(const Checkpoint& checkpoint) {
  const nlohmann::json& config = checkpoint.config();
  const auto found = config.find("model_type");
  std::string known;
  for (const Entry& entry : entries) {
    if (found != config.end() && *found == entry.model_type) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.model_type);
  }
  throw CheckpointError(checkpoint.config_file().string() + ": key \"model_type\" " +
                        (found == config.end() ? "is missing" : "is " + show(*found)) + "; expected one of: " + known);
}

}  // namespace

Architecture describe_architecture(const Checkpoint& checkpoint) { return find_entry(checkpoint).describe(checkpoint); }

std::unique_ptr<Model> load_registered(const Checkpoint& checkpoint, const ModelOptions& options) {
  return find_entry(checkpoint).load(checkpoint, options);
}

}  // namespace replayeval
