#include "reports/gate/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/gate/worst_first.h"

namespace replayeval::reports::gate {
namespace {

// A command ends with its line, and properties with ',' and ':'.
std::string escaped(const std::string& text, bool property) {
  std::string result;
  for (const char letter : text) {
    const bool special =
        letter == '%' || letter == '\r' || letter == '\n' || (property && (letter == ':' || letter == ','));
    result += special ? fmt::format("%{:02X}", static_cast<unsigned>(letter)) : std::string(1, letter);
  }
  return result;
}

std::string command(const char* level, const std::string& title, const std::string& message) {
  return fmt::format("::{} title={}::{}\n", level, escaped(title, true), escaped(message, false));
}

// The last one says how many there are besides.
std::string as_many_as_are_shown(const std::vector<std::string>& commands, const char* level) {
  std::size_t shown = std::min(commands.size(), most_annotations);
  if (shown < commands.size()) --shown;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += commands[i];
  if (shown < commands.size())
    text += command(level, "gate",
                    fmt::format("{} more like these are in the job's log and summary", commands.size() - shown));
  return text;
}

}  // namespace

std::string annotations(const Outcome& outcome) {
  std::vector<std::string> errors, warnings;
  for (const Remark& remark : remarks(outcome)) {
    if (remark.first.effect == Effect::pass) continue;
    const bool fails = remark.first.effect == Effect::fail;
    (fails ? errors : warnings)
        .push_back(command(fails ? "error" : "warning", fmt::format("{}: {}", name_of(remark.first.word), who(remark)),
                           what(remark)));
  }
  for (const std::string& warning : outcome.warnings) warnings.push_back(command("warning", "gate", warning));
  return as_many_as_are_shown(errors, "error") + as_many_as_are_shown(warnings, "warning");
}

std::string annotation_of_fault(const std::string& message) { return command("error", "gate", message); }

}  // namespace replayeval::reports::gate
