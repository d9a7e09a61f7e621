// How a model runs and what an arm is, as options of the commands that take no config.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/checkpoint/checkpoint.h"
#include "eval/model/model.h"

namespace replayeval {

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

struct ModelArguments {
  DeviceKind device = DeviceKind::cpu;
  std::optional<Dtype> compute_dtype;
  DtFloor dt_floor = DtFloor::published;
  NormSpan norm_span = NormSpan::published;
  delta_rule::Numerics delta_rule = default_delta_numerics;
};

// --device, --compute-dtype, --dt-floor, --norm-span, --beta, --log-decay, --qk-norm. `arguments` outlives the command.
void add_model_options(CLI::App& command, ModelArguments& arguments);
ModelOptions options_of(const ModelArguments& arguments, const Checkpoint& checkpoint);

struct ArmArguments {
  Arm arm;
  std::optional<Dtype> ring_dtype;
  std::optional<RingForm> ring_form;
  std::vector<const CLI::Option*> replay_only;
};

// --executor, --state-dtype, --state-overflow and, of replay only, --buffer-len, --ring-dtype, --ring-form, --route,
// --flush. `arguments` outlives the command.
void add_arm_options(CLI::App& command, ArmArguments& arguments);

// `published`: the model's ring form where none is asked for; `compute`: its compute dtype, which rings have by
// default. Throws std::invalid_argument on replay's options with --executor exact, and as validate(Arm).
Arm arm_of(const ArmArguments& arguments, RingForm published, Dtype compute);

// An arm in one word: "exact" or "replay", and after a colon the options above without their dashes, parted by commas:
// "replay:buffer-len=8,state-dtype=bfloat16". The word becomes the arm's name. Throws std::invalid_argument.
Arm arm_of_word(const std::string& word, RingForm published, Dtype compute);

}  // namespace replayeval
