#include "eval/cli/arm_options.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

#include "eval/model/architecture.h"

namespace replayeval {
namespace {

const std::map<std::string, Dtype>& dtype_words() {
  static const std::map<std::string, Dtype> words = {
      {"float32", Dtype::float32}, {"bfloat16", Dtype::bfloat16}, {"float16", Dtype::float16}};
  return words;
}

void add_precision(CLI::App& command, const std::string& name, delta_rule::Precision& target, const std::string& what) {
  add_choice<delta_rule::Precision, delta_rule::Precision>(
      command, name, target, {{"float32", delta_rule::Precision::float32}, {"compute", delta_rule::Precision::compute}},
      "Delta-rule models: what " + what);
}

void refuse_replay_options_of_exact(const ArmArguments& arguments) {
  if (arguments.arm.executor == Executor::replay) return;
  for (const CLI::Option* option : arguments.replay_only)
    if (option->count() > 0)
      throw std::invalid_argument(option->get_name() +
                                  ": means nothing with --executor exact; expected only with --executor replay");
}

// "replay:a=1,b=2" as "--executor replay --a 1 --b 2".
std::vector<std::string> options_in(const std::string& word) {
  const std::size_t colon = word.find(':');
  std::vector<std::string> options = {"--executor", word.substr(0, colon)};
  if (colon == std::string::npos) return options;
  std::istringstream rest(word.substr(colon + 1));
  std::string setting;
  while (std::getline(rest, setting, ',')) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      throw std::invalid_argument(fmt::format("--arm: found '{}' in '{}', expected OPTION=VALUE", setting, word));
    options.push_back("--" + setting.substr(0, equals));
    options.push_back(setting.substr(equals + 1));
  }
  return options;
}

}  // namespace

void add_model_options(CLI::App& command, ModelArguments& arguments) {
  add_choice<DeviceKind, DeviceKind>(command, "--device", arguments.device,
                                     {{"cpu", DeviceKind::cpu}, {"cuda", DeviceKind::cuda}},
                                     "Where to run (default cpu)");
  add_choice(command, "--compute-dtype", arguments.compute_dtype, dtype_words(),
             "Of dense layers and mixer inputs (default float32 on cpu, the checkpoint's on cuda)");
  add_choice<DtFloor, DtFloor>(command, "--dt-floor", arguments.dt_floor,
                               {{"published", DtFloor::published}, {"transformers", DtFloor::transformers}},
                               "Whose lower bound on the time step (default published)");
  add_choice<NormSpan, NormSpan>(command, "--norm-span", arguments.norm_span,
                                 {{"published", NormSpan::published}, {"transformers", NormSpan::transformers}},
                                 "Whose span of a gated norm with several groups (default published)");
  add_precision(command, "--beta", arguments.delta_rule.beta, "beta's sigmoid is rounded to (default compute)");
  add_precision(command, "--log-decay", arguments.delta_rule.log_decay,
                "the log-decay is rounded to (default float32)");
  add_precision(command, "--qk-norm", arguments.delta_rule.qk_norm,
                "normalised q and k are rounded to (default float32)");
}

ModelOptions options_of(const ModelArguments& arguments, const Checkpoint& checkpoint) {
  ModelOptions options;
  options.device = arguments.device;
  const Dtype automatic = arguments.device == DeviceKind::cpu ? Dtype::float32 : stored_dtype(checkpoint);
  options.compute_dtype = arguments.compute_dtype.value_or(automatic);
  options.dt_floor = arguments.dt_floor;
  options.norm_span = arguments.norm_span;
  options.delta_rule = arguments.delta_rule;
  return options;
}

void add_arm_options(CLI::App& command, ArmArguments& arguments) {
  Arm& arm = arguments.arm;
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

Arm arm_of(const ArmArguments& arguments, RingForm published, Dtype compute) {
  refuse_replay_options_of_exact(arguments);
  Arm arm = arguments.arm;
  arm.ring_form = arguments.ring_form.value_or(published);
  arm.replay.ring_dtype = arguments.ring_dtype.value_or(compute);
  validate(arm);
  return arm;
}

Arm arm_of_word(const std::string& word, RingForm published, Dtype compute) {
  CLI::App parser("", "");
  ArmArguments arguments;
  arguments.arm.name = word;
  add_arm_options(parser, arguments);
  std::vector<std::string> options = options_in(word);
  try {
    parser.parse(std::vector<std::string>(options.rbegin(), options.rend()));  // the parser takes them off the back
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument("--arm " + word + ": " + error.what());
  }
  return arm_of(arguments, published, compute);
}

}  // namespace replayeval
