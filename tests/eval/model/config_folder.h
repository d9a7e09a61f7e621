// A folder of a config.json and next to no weights, for tests of how configurations are read.
#pragma once

#include <nlohmann/json.hpp>

#include "eval/checkpoint/checkpoint.h"
#include "tests/eval/checkpoint/checkpoint_folder.h"

namespace replayeval::testing {

class ConfigFolder {
 public:
  explicit ConfigFolder(const nlohmann::json& config) {
    write_bytes(folder_.path() / "config.json", config.dump());
    write_safetensors(folder_.path() / "model.safetensors", {{"unread", float_tensor({1}, {0.0F})}});
  }
  Checkpoint open() const { return Checkpoint::open(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

}  // namespace replayeval::testing
