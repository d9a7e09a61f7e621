#include "reports/gate/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace replayeval::reports::gate {
namespace {

struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

std::string suite(const std::string& name, const Counts& counts, const std::string& cases) {
  const std::string attributes = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", counts.tests,
                                             counts.failures, counts.errors, counts.skipped);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"replayeval gate\" {1}>\n"
      "  <testsuite name=\"{0}\" {1}>\n{2}  </testsuite>\n</testsuites>\n",
      xml_escaped(name), attributes, cases);
}

bool is_failure(const Judgement& judgement) {
  return judgement.effect == Effect::fail && judgement.word != Word::unusable;
}

bool is_skipped(const Judgement& judgement) { return judgement.effect == Effect::warn; }

std::string test_case(const Judgement& judgement) {
  const Measurement& measured = judgement.measured;
  std::string name = judgement.rule.name;
  for (const std::string& part : {measured.workload, measured.arm, measured.metric})
    if (!part.empty()) name += " / " + part;
  std::string text = sentence(judgement);
  if (const std::string need = need_text(judgement); !need.empty()) text += "; " + need;
  const std::string escaped = xml_escaped(text);
  std::string body;
  if (judgement.word == Word::unusable)
    body = fmt::format("<error type=\"unusable\" message=\"{}\"/>", escaped);
  else if (is_failure(judgement))
    body = fmt::format("<failure type=\"{}\" message=\"{}\"/>", name_of(judgement.word), escaped);
  else if (is_skipped(judgement))
    body = fmt::format("<skipped message=\"{}: {}\"/>", name_of(judgement.word), escaped);
  else
    body = fmt::format("<system-out>{}: {}</system-out>", name_of(judgement.word), escaped);
  return fmt::format("    <testcase classname=\"replayeval.gate\" name=\"{}\">{}</testcase>\n", xml_escaped(name),
                     body);
}

}  // namespace

std::string junit_xml(const Outcome& outcome) {
  std::string cases;
  Counts counts;
  for (const Judgement& judgement : outcome.judgements) {
    cases += test_case(judgement);
    ++counts.tests;
    counts.failures += is_failure(judgement) ? 1 : 0;
    counts.errors += judgement.word == Word::unusable ? 1 : 0;
    counts.skipped += is_skipped(judgement) ? 1 : 0;
  }
  for (const std::string& warning : outcome.warnings)
    cases += fmt::format("    <system-out>warning: {}</system-out>\n", xml_escaped(warning));
  return suite(outcome.policy, counts, cases);
}

std::string junit_xml_of_fault(const std::string& message) {
  return suite(
      "replayeval gate", {.tests = 1, .failures = 0, .errors = 1, .skipped = 0},
      fmt::format("    <testcase classname=\"replayeval.gate\" name=\"the gate runs\"><error type=\"unusable\" "
                  "message=\"{}\"/></testcase>\n",
                  xml_escaped(message)));
}

std::string xml_escaped(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    // U+FFFE and U+FFFF, which XML 1.0 leaves out of its characters.
    if (const std::string_view next = std::string_view(text).substr(i, 3);
        next == "\xEF\xBF\xBE" || next == "\xEF\xBF\xBF") {
      escaped += '?';
      i += 2;
      continue;
    }
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\n':
        escaped += "&#10;";
        break;
      case '\r':
        escaped += "&#13;";
        break;
      case '\t':
        escaped += "&#9;";
        break;
      default:
        escaped += static_cast<unsigned char>(letter) < 0x20 ? '?' : letter;
    }
  }
  return escaped;
}

}  // namespace replayeval::reports::gate
