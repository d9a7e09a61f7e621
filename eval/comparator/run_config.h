// The configuration of a run, from YAML (configs/README.md describes every key). Strict: an unknown, repeated, missing
// or misspelt key or a value out of range is an error that names file, line, column, key and expectation.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/random_ids.h"
#include "datasets/recall/recall.h"
#include "datasets/tasks/task_source.h"
#include "datasets/text_source.h"
#include "eval/executors/arm.h"
#include "eval/model/delta_numerics.h"
#include "eval/model/dt_floor.h"
#include "eval/model/norm_span.h"
#include "kernels/types.h"

namespace replayeval {

// One line: "configs/x.yaml:LINE:COL: key 'foo': expected ...".
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Prompt : std::uint8_t { decode, prefill };
enum class ErrorDepth : std::uint8_t { local, propagated, gold };
std::string_view dt_floor_name(DtFloor floor);
std::string_view norm_span_name(NormSpan span);
std::string_view precision_name(delta_rule::Precision precision);  // "float32" or "compute"
std::string_view prompt_name(Prompt prompt);
std::string_view error_depth_name(ErrorDepth depth);
std::string_view mode_name(Mode mode);

// An arm as written. What is absent is known only with the checkpoint: ring_form as published for its family,
// ring_storage the run's compute dtype.
struct ArmConfig {
  Arm arm;
  std::optional<RingForm> ring_form;
  std::string ring_form_place;  // "FILE:LINE:COL" of the key, if it is there, for messages
  std::optional<Dtype> ring_storage;
};

struct SourceConfig {
  datasets::TextSourceSpec text;
  std::optional<datasets::RandomIdsSpec> random_ids;  // instead of text
  std::filesystem::path root;  // what text.path is relative to, for TextSource::open; empty after parse_run_config
  std::string place;           // "FILE:LINE:COL", for messages
};

struct StateErrorConfig {
  std::int64_t sequences = 1;           // how many windows are sampled
  std::vector<std::int64_t> positions;  // tokens decoded when the state is looked at; filled in from `count`
  std::vector<ErrorDepth> depths;       // in the order local, propagated, gold
};

struct RecallConfig {
  datasets::RecallSpec spec;
  std::filesystem::path root;  // what its haystack's paths are relative to; empty after parse_run_config
  std::string place;           // "FILE:LINE:COL", for messages
};

struct TaskConfig {
  tasks::TaskSourceSpec source;
  std::filesystem::path root;    // what its paths are relative to; empty after parse_run_config
  std::string place;             // "FILE:LINE:COL", for messages
  std::optional<double> margin;  // accuracy differences that equivalence is tested within
  std::uint64_t seed = 0;        // of generations that sample
};

// Where a generation's prompts come from.
enum class PromptForm : std::uint8_t { jsonl, text, samples, recall };

struct PromptConfig {
  PromptForm form = PromptForm::jsonl;
  std::optional<std::int64_t> count;  // prompts to take; fewer are refused
  std::string path, field, sha256;    // jsonl: member of each row that is a text or a list of token ids
  datasets::TextSourceSpec text;      // text: pieces of its documents ...
  std::int64_t tokens = 0;            // ... of as many tokens, bos apart
  bool bos = true;                    // of text: whether one begins with the tokenizer's BOS
  tasks::TaskSourceSpec samples;      // samples: of a generate_until task
  datasets::RecallSpec recall;        // recall: documents up to the first answer
  std::filesystem::path root;         // what its paths are relative to; empty after parse_run_config
  std::string place;                  // "FILE:LINE:COL", for messages

  std::string source_path() const;  // the path to look for; empty where there is none
};

struct GenerationConfig {
  PromptConfig prompts;
  std::int64_t max_tokens = 256;  // generated ones, at most
  double temperature = 0.0;       // 0: greedy
  std::int64_t top_k = 0;         // 0: all tokens
  double top_p = 1.0;
  std::uint64_t seed = 0;
  std::int64_t repeats = 1;
  std::vector<std::string> stop;
  std::vector<std::int32_t> end_tokens;  // instead of the checkpoint's; empty: those
  bool ignore_eos = false;               // no token ends a sequence
};

// A scripted event of a churn workload: what happens to a sequence (evict, save) or to a call (pad, with so many rows).
struct ChurnEvent {
  enum class What : std::uint8_t { evict, save, pad };
  std::int64_t step = 0;
  What what = What::evict;
  std::int64_t value = 0;  // the sequence, or how many rows
  std::string place;       // "FILE:LINE:COL", for messages
};

struct ChurnConfig {
  std::vector<std::int64_t> batches = {255, 256, 257};  // sequences at once, a run each
  bool whole_model = true;                              // otherwise the mixers alone
  std::optional<std::int64_t> mixers;                   // how many of the model's mixers are looked at; absent: all
  std::optional<std::int64_t> sequences;                // absent: a quarter more than a batch has
  std::int64_t length = 96;                             // tokens of a sequence, at most
  std::int64_t prompt_tokens = 33;                      // of them in its prompt, at most
  std::int64_t page_length = 16;                        // tokens in a page of keys and values
  std::uint64_t seed = 0;
  // Chances: that a sequence is evicted or saved at a step, that a call has padded rows. Or events as written.
  double evict = 0.02, save = 0.05, pad = 0.2;
  std::vector<ChurnEvent> script;
};

struct WorkloadConfig {
  std::string name;
  std::string kind = "perplexity";
  std::vector<SourceConfig> sources;  // perplexity
  std::vector<RecallConfig> recall;   // recall: its tasks
  std::optional<TaskConfig> task;     // task
  std::optional<GenerationConfig> generation;
  std::optional<ChurnConfig> churn;  // churn
  std::int64_t context = 2048;
  std::int64_t stride = 2048;              // tokens between window starts; default: context
  bool bos = true;                         // windows begin with the tokenizer's BOS
  std::optional<std::int64_t> max_tokens;  // scored tokens of the whole workload
  std::optional<std::int64_t> batch;       // windows decoded at once; absent: chosen by the comparator ("auto")
  std::int64_t block = 256;                // tokens per teacher-forced call
  Mode mode = Mode::teacher_forced;
  Prompt prompt = Prompt::decode;
  std::int64_t prefill_tokens = 0;             // perplexity with prompts: of each window, 1 … context - 1
  std::vector<std::int64_t> position_buckets;  // edges, ascending, the last one == context
  std::optional<StateErrorConfig> state_error;
};

struct RunConfig {
  std::filesystem::path file;  // as given, for messages
  std::string name;
  std::uint64_t seed = 0;
  std::string checkpoint;                   // as written
  std::string checkpoint_place;             // "FILE:LINE:COL", for messages
  std::filesystem::path checkpoint_folder;  // resolved; empty after parse_run_config
  bool random_weights = false;              // out of `seed`; the checkpoint may then be a config.json alone
  DeviceKind device = DeviceKind::cpu;
  std::vector<int> gpus;               // CUDA devices to spread the layers over
  bool all_gpus = false;               // "auto": as few of all as hold the weights
  std::optional<Dtype> compute_dtype;  // absent: "auto"
  DtFloor dt_floor = DtFloor::published;
  NormSpan norm_span = NormSpan::published;
  delta_rule::Numerics delta_rule = default_delta_numerics;
  std::map<std::string, std::string> numerics_places;  // "FILE:LINE:COL" of each key of `numerics`, for messages
  std::string baseline;
  double confidence = 0.95;
  std::int64_t bootstrap_samples = 2000;
  std::vector<ArmConfig> arms;
  std::vector<WorkloadConfig> workloads;

  std::size_t baseline_index() const;
  bool needs_tokenizer() const;  // some source is text
};

// `text` is the YAML; `file` appears in messages. Looks at no files. Throws ConfigError.
RunConfig parse_run_config(const std::string& text, const std::filesystem::path& file);

// Reads `file`, then finds the checkpoint folder and the root of each source: relative paths are looked up in the
// config file's folder first, then in the working directory. Throws ConfigError also when something is in neither.
RunConfig load_run_config(const std::filesystem::path& file);

// "auto": float32 on the CPU, the checkpoint's type on CUDA.
Dtype compute_dtype_of(const RunConfig& config, Dtype checkpoint_dtype);

// Arms ready to run. `published`: the model's Architecture::published_ring_form(). Throws std::invalid_argument as
// validate(Arm) does.
std::vector<Arm> arms_of(const RunConfig& config, RingForm published, Dtype compute_dtype);

// The config with every default filled in, as results.json holds it; paths as written.
nlohmann::json to_json(const RunConfig& config);

// SHA-256 (hex) of to_json() in canonical form, without what changes no number: the run's name. Device, batch and block
// count. Two runs may share a result folder if and only if their identities are equal.
std::string config_identity(const RunConfig& config);

}  // namespace replayeval
