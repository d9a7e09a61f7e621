#include "eval/cli/logits.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "eval/checkpoint/checkpoint.h"
#include "eval/cli/token_ids_file.h"
#include "eval/model/architecture.h"
#include "eval/model/delta_numerics.h"
#include "eval/model/model.h"
#include "eval/npy.h"

namespace replayeval {
namespace {

struct Arguments {
  std::vector<std::string> checkpoints, outs;
  std::string ids;
  Mode mode = Mode::teacher_forced;
  DeviceKind device = DeviceKind::cpu;
  std::optional<Dtype> compute_dtype, ring_dtype;
  DtFloor dt_floor = DtFloor::published;
  NormSpan norm_span = NormSpan::published;
  delta_rule::Numerics delta_rule = default_delta_numerics;
  std::optional<RingForm> ring_form;
  Arm arm;
  std::vector<const CLI::Option*> replay_only;
};

const std::map<std::string, Dtype>& dtype_words() {
  static const std::map<std::string, Dtype> words = {
      {"float32", Dtype::float32}, {"bfloat16", Dtype::bfloat16}, {"float16", Dtype::float16}};
  return words;
}

// Adds an option whose words stand for the values of an enumeration.
template <typename Target, typename Value>
CLI::Option* add_choice(CLI::App& command, const std::string& name, Target& target,
                        const std::map<std::string, Value>& words, const std::string& help) {
  std::string allowed;
  for (const auto& [word, value] : words) allowed += (allowed.empty() ? "" : "|") + word;
  return command
      .add_option_function<std::string>(
          name, [&target, words](const std::string& word) { target = words.at(word); }, help + ": " + allowed)
      ->check(CLI::IsMember(words));
}

void add_precision(CLI::App& command, const std::string& name, delta_rule::Precision& target, const std::string& what) {
  add_choice<delta_rule::Precision, delta_rule::Precision>(
      command, name, target, {{"float32", delta_rule::Precision::float32}, {"compute", delta_rule::Precision::compute}},
      "Delta-rule models: where " + what + " is rounded");
}

void add_arm_options(CLI::App& command, Arguments& arguments) {
  Arm& arm = arguments.arm;
  arm.name = "logits";
  CLI::Option* executor = add_choice<Executor, Executor>(command, "--executor", arm.executor,
                                                         {{"exact", Executor::exact}, {"replay", Executor::replay}},
                                                         "How the state-space layers run (default exact)");
  add_choice(command, "--state-dtype", arm.state_storage.dtype, dtype_words(), "State storage (default float32)");
  add_choice<Overflow, Overflow>(command, "--state-overflow", arm.state_storage.overflow,
                                 {{"infinity", Overflow::infinity}, {"saturate", Overflow::saturate}},
                                 "Magnitudes beyond the state storage become (default infinity)");
  const std::vector<CLI::Option*> replay_only = {
      command.add_option("--buffer-len", arm.replay.buffer_len, "Ring length L, 1 to 64 (default 16)")
          ->check(CLI::Range(1, 64)),
      add_choice<std::optional<Dtype>, Dtype>(command, "--ring-dtype", arguments.ring_dtype,
                                              {{"float32", Dtype::float32}, {"bfloat16", Dtype::bfloat16}},
                                              "Ring storage (default the compute dtype)"),
      add_choice<std::optional<RingForm>, RingForm>(command, "--ring-form", arguments.ring_form,
                                                    {{"inputs", RingForm::inputs}, {"deltas", RingForm::deltas}},
                                                    "What the ring holds (default deltas for delta-rule models, "
                                                    "inputs for the others)"),
      add_choice<Route, Route>(command, "--route", arm.replay.route,
                               {{"output_only", Route::output_only}, {"state_and_output", Route::state_and_output}},
                               "How y is computed between flushes (default output_only)"),
      add_choice<Flush, Flush>(command, "--flush", arm.replay.flush,
                               {{"summed", Flush::summed}, {"sequential", Flush::sequential}},
                               "How a flush builds the state (default summed)")};
  for (CLI::Option* option : replay_only) {
    option->needs(executor);
    arguments.replay_only.push_back(option);
  }
}

void refuse_replay_options_of_exact(const Arguments& arguments) {
  if (arguments.arm.executor == Executor::replay) return;
  for (const CLI::Option* option : arguments.replay_only)
    if (option->count() > 0)
      throw std::invalid_argument(option->get_name() +
                                  ": means nothing with --executor exact; expected only with --executor replay");
}

Dtype compute_dtype(const Arguments& arguments, const Checkpoint& checkpoint) {
  if (arguments.compute_dtype) return *arguments.compute_dtype;
  return arguments.device == DeviceKind::cpu ? Dtype::float32 : stored_dtype(checkpoint);
}

// Copies the logits of `hidden`, [1, 1, T, hidden], into `all` from row `begin` on; a NaN or infinity is an error.
void collect_logits(const Model& model, const at::Tensor& hidden, std::int64_t begin, std::vector<float>& all) {
  const at::Tensor logits = model.logits(hidden.select(0, 0).select(0, 0)).cpu().contiguous();
  const std::int64_t vocab = model.vocab_size();
  const auto* values = logits.const_data_ptr<float>();
  for (std::int64_t i = 0; i < logits.numel(); ++i) {
    if (!std::isfinite(values[i]))
      throw std::runtime_error("logits: not finite at token " + std::to_string(begin + i / vocab) +
                               ", vocabulary index " + std::to_string(i % vocab) +
                               "; expected finite numbers (nothing was written)");
    all[static_cast<std::size_t>(begin * vocab + i)] = values[i];
  }
}

// float32 [ids.size(), vocab], row-major.
std::vector<float> compute_logits(const Model& model, const Arm& arm, std::vector<std::int64_t> ids, Mode mode) {
  const auto tokens = static_cast<std::int64_t>(ids.size());
  const std::unique_ptr<DecodeCache> cache = model.make_cache({arm}, 1, tokens);
  std::vector<float> all(static_cast<std::size_t>(tokens * model.vocab_size()));
  // Blocks keep the activations of long inputs bounded; where a block is cut does not change the recurrence.
  constexpr std::int64_t longest_block = 1024;
  for (std::int64_t begin = 0; begin < tokens; begin += longest_block) {
    const std::int64_t block = std::min(longest_block, tokens - begin);
    const at::Tensor row = at::from_blob(ids.data() + begin, {1, block}, at::kLong);
    collect_logits(model, model.forward(row, *cache, mode), begin, all);
  }
  return all;
}

void write_logits(const Arguments& arguments, const std::string& folder, const std::string& out) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  ModelOptions options;
  options.device = arguments.device;
  options.compute_dtype = compute_dtype(arguments, checkpoint);
  options.dt_floor = arguments.dt_floor;
  options.norm_span = arguments.norm_span;
  options.delta_rule = arguments.delta_rule;
  const Architecture architecture = describe_architecture(checkpoint);
  Arm arm = arguments.arm;
  arm.ring_form = arguments.ring_form.value_or(architecture.published_ring_form());
  arm.replay.ring_dtype = arguments.ring_dtype.value_or(options.compute_dtype);
  validate(arm);
  const std::vector<std::int64_t> ids = read_token_ids(arguments.ids, architecture.vocab_size);
  const std::unique_ptr<Model> model = load_model(checkpoint, options);
  const std::vector<float> all = compute_logits(*model, arm, ids, arguments.mode);
  write_npy(out, {static_cast<std::int64_t>(ids.size()), model->vocab_size()}, std::span<const float>(all));
}

void run_logits(const Arguments& arguments) {
  refuse_replay_options_of_exact(arguments);
  const std::size_t checkpoints = arguments.checkpoints.size(), outs = arguments.outs.size();
  if (checkpoints != outs)
    throw std::invalid_argument("--out: " + std::to_string(outs) + " files for " + std::to_string(checkpoints) +
                                " checkpoints; expected as many");
  for (std::size_t i = 0; i < checkpoints; ++i) write_logits(arguments, arguments.checkpoints[i], arguments.outs[i]);
}

}  // namespace

void add_logits_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("logits", "Full float32 logits of given token ids under one arm, as .npy");
  command->add_option("checkpoint", arguments->checkpoints, "Hugging Face checkpoint folders, one after another")
      ->required();
  command->add_option("--ids", arguments->ids, "JSON file: a list of token ids")->required();
  command->add_option("--out", arguments->outs, "The .npy file to write: float32 [tokens, vocab]; one each checkpoint")
      ->required()
      ->allow_extra_args(false);
  add_choice<Mode, Mode>(
      *command, "--mode", arguments->mode, {{"teacher_forced", Mode::teacher_forced}, {"stepwise", Mode::stepwise}},
      "One block, or token by token, which is equal up to the rounding of dense layers (default teacher_forced)");
  add_choice<DeviceKind, DeviceKind>(*command, "--device", arguments->device,
                                     {{"cpu", DeviceKind::cpu}, {"cuda", DeviceKind::cuda}},
                                     "Where to run (default cpu)");
  add_choice(*command, "--compute-dtype", arguments->compute_dtype, dtype_words(),
             "Of dense layers and mixer inputs (default float32 on cpu, the checkpoint's on cuda)");
  add_choice<DtFloor, DtFloor>(*command, "--dt-floor", arguments->dt_floor,
                               {{"published", DtFloor::published}, {"transformers", DtFloor::transformers}},
                               "Whose lower bound on the time step (default published)");
  add_choice<NormSpan, NormSpan>(*command, "--norm-span", arguments->norm_span,
                                 {{"published", NormSpan::published}, {"transformers", NormSpan::transformers}},
                                 "Whose span of a gated norm with several groups (default published)");
  add_precision(*command, "--beta", arguments->delta_rule.beta, "beta's sigmoid (default compute)");
  add_precision(*command, "--log-decay", arguments->delta_rule.log_decay, "the log-decay (default float32)");
  add_precision(*command, "--qk-norm", arguments->delta_rule.qk_norm, "normalised q and k (default float32)");
  add_arm_options(*command, *arguments);
  command->callback([arguments] { run_logits(*arguments); });
}

}  // namespace replayeval
