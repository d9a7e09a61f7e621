// What a result was made with and on: the tool's build and the machine.
#pragma once

#include <nlohmann/json.hpp>

#include "kernels/types.h"

namespace replayeval {

nlohmann::json tool_description();  // {name, version, git, build}
nlohmann::json environment_description(
    DeviceKind device);  // {cpu, cores, threads, memory_bytes, os, torch, date, gpu?, cuda?}

}  // namespace replayeval
