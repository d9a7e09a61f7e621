// Text for people on standard error.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace replayeval {

// What cannot be written there, on a full disk say, stops no work and changes no exit code: there is nowhere to say so.
inline void put_on_stderr(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

template <typename... Parts>
void say(fmt::format_string<Parts...> format, Parts&&... parts) {
  put_on_stderr(fmt::format(format, std::forward<Parts>(parts)...));
}

}  // namespace replayeval
