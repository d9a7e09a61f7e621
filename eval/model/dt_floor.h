// What lower bound a Mamba-2 model puts on its time step dt where implementations disagree.
#pragma once

#include <cstdint>

namespace replayeval {

enum class DtFloor : std::uint8_t {
  published,     // as the model's published code: `time_step_limit`, (0, inf) where config.json has none
  transformers,  // as transformers' one-call path: (`time_step_min`, inf)
};

}  // namespace replayeval
