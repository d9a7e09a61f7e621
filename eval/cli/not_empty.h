// Values of options that must not be empty: `--against "$UNSET"` is a mistake, not the absence of --against.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace replayeval {

// expected: what the value is, "a folder".
inline CLI::Validator not_empty(const std::string& expected) {
  return {
      [expected](const std::string& value) { return value.empty() ? "empty; expected " + expected : std::string(); },
      "", ""};
}

}  // namespace replayeval
