// A nemotron_h folder of a few thousand random weights, with widths that are no multiples of 32.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>

#include "eval/checkpoint/checkpoint.h"
#include "tests/eval/checkpoint/checkpoint_folder.h"

namespace replayeval::testing {

class TinyNemotronH {
 public:
  TinyNemotronH();
  void add_mixture();  // a sixth layer: 6 latent experts, 2 a token, and a shared one

  nlohmann::json config;
  Tensors tensors;

  void write() const;       // config.json and model.safetensors
  Checkpoint open() const;  // writes, then opens
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  void add(const std::string& name, std::vector<std::int64_t> shape, float mean, float deviation);
  void add_mamba(const std::string& layer);

  TemporaryFolder folder_;
  std::uint32_t seed_ = 1;
};

}  // namespace replayeval::testing
