#include "eval/cli/logits.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "eval/checkpoint/checkpoint.h"
#include "eval/cli/arm_options.h"
#include "eval/cli/token_ids_file.h"
#include "eval/model/architecture.h"
#include "eval/model/model.h"
#include "eval/npy.h"

namespace replayeval {
namespace {

struct Arguments {
  std::vector<std::string> checkpoints, outs;
  std::string ids;
  Mode mode = Mode::teacher_forced;
  ModelArguments model;
  ArmArguments arm;
};

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
  const ModelOptions options = options_of(arguments.model, checkpoint);
  const Architecture architecture = describe_architecture(checkpoint);
  const Arm arm = arm_of(arguments.arm, architecture.published_ring_form(), options.compute_dtype);
  const std::vector<std::int64_t> ids = read_token_ids(arguments.ids, architecture.vocab_size);
  const std::unique_ptr<Model> model = load_model(checkpoint, options);
  const std::vector<float> all = compute_logits(*model, arm, ids, arguments.mode);
  write_npy(out, {static_cast<std::int64_t>(ids.size()), model->vocab_size()}, std::span<const float>(all));
}

void run_logits(const Arguments& arguments) {
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
  add_model_options(*command, arguments->model);
  arguments->arm.arm.name = "logits";
  add_arm_options(*command, arguments->arm);
  command->callback([arguments] { run_logits(*arguments); });
}

}  // namespace replayeval
