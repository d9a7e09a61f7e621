#include "reports/gate/annotations.h"

#include <fmt/format.h>

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

}  // namespace

std::string annotations(const Outcome& outcome) {
  std::string text;
  for (const Judgement& judgement : outcome.judgements) {
    if (judgement.effect == Effect::pass) continue;
    std::string message = sentence(judgement);
    if (const std::string need = need_text(judgement); !need.empty()) message += "; " + need;
    text += command(judgement.effect == Effect::fail ? "error" : "warning",
                    fmt::format("{}: {}", name_of(judgement.word), judgement.rule.name), message);
  }
  for (const std::string& warning : outcome.warnings) text += command("warning", "gate", warning);
  return text;
}

std::string annotation_of_fault(const std::string& message) { return command("error", "gate", message); }

}  // namespace replayeval::reports::gate
