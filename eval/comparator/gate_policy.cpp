#include "eval/comparator/gate_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "eval/comparator/run_config.h"
#include "eval/comparator/yaml_map.h"

namespace replayeval {
namespace {

namespace gate = reports::gate;

const Words consequences = {"pass", "warn", "fail"};
const Words rule_keys = {"name",       "metric",       "workloads", "arms",    "at_most", "at_least",    "within",
                         "confidence", "inconclusive", "compare",   "against", "pool",    "uncertainty", "stored_arm"};

gate::OnInconclusive parse_consequence(const YamlMap& map) {
  const std::string word = map.word("inconclusive", consequences);
  return word == "pass"   ? gate::OnInconclusive::pass
         : word == "warn" ? gate::OnInconclusive::warn
                          : gate::OnInconclusive::fail;
}

struct Bound {
  double value = 0.0;
  bool percent = false;  // how it was written
};

// A plain number, or one in percent: "0.1 %" is 0.001.
Bound bound(const YamlMap& map, const std::string& key) {
  const char* expected = "a number, or one in percent such as '0.1 %'";
  std::string text = map.text(key, expected);
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  while (text.ends_with(' ')) text.pop_back();
  double value = 0.0;
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [rest, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || begin == rest || !std::isfinite(value))
    map.fail(key, fmt::format("expected {}, found '{}'", expected, map.text(key)));
  return {percent ? value / 100.0 : value, percent};
}

// Margins that no value of the metric can be near, and units that it does not have: they would hold for every run.
void check_bound(const YamlMap& map, const std::string& key, const gate::Rule& rule) {
  const Bound found = bound(map, key);
  const auto expect = [&](bool holds, const std::string& expected) {
    if (!holds) map.fail(key, fmt::format("expected {}, found '{}'", expected, map.text(key)));
  };
  const double size = std::abs(found.value);
  switch (gate::scale_of(rule)) {
    case gate::Scale::plain:
      return expect(!found.percent, fmt::format("a plain number, as {} is no share", rule.metric));
    case gate::Scale::share:
      expect(found.value >= 0.0 && found.value <= 1.0,
             fmt::format("0 to 1, or 0 to 100 %, as {} is a share", rule.metric));
      return expect(!found.percent || key != "at_least" || size > 0.01 || size == 0.0,
                    fmt::format("a share that could be missed, such as '{:g} %' or {:g}", 1e4 * size, 100.0 * size));
    case gate::Scale::difference:
      return expect(size <= 1.0,
                    fmt::format("-1 to 1, or -100 to 100 %, as {} is a difference of shares", rule.metric));
    case gate::Scale::relative:
      return expect(found.percent || size <= 1.0,
                    fmt::format("a fraction from -1 to 1, or a number in percent such as '{:g} %'", found.value));
    case gate::Scale::ratio:
      return expect(found.value >= 0.0, fmt::format("0 or more, as {} is a ratio", rule.metric));
    default:
      return;
  }
}

gate::Margin parse_margin(const YamlMap& map) {
  gate::Margin margin;
  if (map.has("within")) {
    if (map.has("at_most") || map.has("at_least")) map.fail("within", "expected without at_most and at_least");
    const double within = bound(map, "within").value;
    if (within < 0.0) map.fail("within", fmt::format("expected 0 or more, found {}", within));
    return {-within, within};
  }
  if (map.has("at_least")) margin.at_least = bound(map, "at_least").value;
  if (map.has("at_most")) margin.at_most = bound(map, "at_most").value;
  if (!margin.at_least && !margin.at_most)
    map.fail("metric", "the rule has no margin; expected at_most, at_least or within beside it");
  if (margin.at_least && margin.at_most && *margin.at_least > *margin.at_most)
    map.fail("at_least",
             fmt::format("expected at most {}, which at_most is; found {}", *margin.at_most, *margin.at_least));
  return margin;
}

void check_metric(const YamlMap& map, const gate::Rule& rule) {
  const std::vector<std::string> groups = gate::groups();
  if (rule.metric.find('.') == std::string::npos || rule.pattern().empty() ||
      std::find(groups.begin(), groups.end(), rule.group()) == groups.end())
    map.fail("metric",
             fmt::format("expected GROUP.NAME with a group of {}; found '{}'", fmt::join(groups, ", "), rule.metric));
  const std::vector<std::string> names = gate::names_of_group(rule.group());
  if (!names.empty() && std::find(names.begin(), names.end(), rule.pattern()) == names.end())
    map.fail("metric", fmt::format("expected one of {0}.{1}; found '{2}'", rule.group(),
                                   fmt::join(names, fmt::format(", {}.", rule.group())), rule.metric));
}

// Keys that depend on each other.
void check_together(const YamlMap& map, const gate::Rule& rule) {
  if (rule.group() == "speed" && rule.compare == gate::Compare::interval && !rule.uncertainty)
    map.fail("uncertainty",
             "missing from a rule of speed; expected how far a repeated run strays, such as '3 %', as results hold no "
             "interval (or `compare: value`)");
  if (rule.group() != "speed" && rule.uncertainty)
    map.fail("uncertainty", "expected only with speed, as other numbers bring their own interval or have none");
  if (rule.pool != gate::Pool::each && (rule.group() != "delta" || rule.against == gate::Against::release))
    map.fail("pool", "expected 'each' but for deltas of tasks against the baseline arm");
  if (rule.stored_arm && !rule.group().starts_with("stored_"))
    map.fail("stored_arm", "expected only with stored_delta and stored_divergence");
  for (const char* key : {"at_least", "at_most", "within"})
    if (map.has(key)) check_bound(map, key, rule);
}

// A name stands in lines of its own in logs, and must not look like several.
std::string name(const YamlMap& map) {
  const char* expected = "a name of one line without control characters";
  std::string found = map.text("name", expected);
  const auto is_control = [](unsigned char letter) { return letter < 0x20 || letter == 0x7f; };
  if (std::any_of(found.begin(), found.end(), is_control) || found.find_first_not_of(' ') == std::string::npos)
    map.fail("name", fmt::format("expected {}", expected));
  return found;
}

std::vector<std::string> globs(const YamlMap& map, const std::string& key) {
  std::vector<std::string> found = map.texts(key);
  if (found.empty()) map.fail(key, "expected a name or glob, or a list of them; found none, which matches nothing");
  return found;
}

gate::Rule parse_rule(const YAML::Node& node, const std::filesystem::path& file, const gate::Rule& defaults) {
  const YamlMap map(node, file, "a rule", rule_keys);
  gate::Rule rule = defaults;
  rule.place = place_of(file, node.Mark());
  rule.name = name(map);
  rule.metric = map.text("metric", "GROUP.NAME, such as delta.perplexity_relative");
  check_metric(map, rule);
  if (map.has("workloads")) rule.workloads = globs(map, "workloads");
  if (map.has("arms")) rule.arms = globs(map, "arms");
  rule.margin = parse_margin(map);
  if (map.has("confidence")) rule.confidence = map.number("confidence", 0.5, 1.0);
  if (map.has("inconclusive")) rule.inconclusive = parse_consequence(map);
  rule.compare = gate::is_counted(rule.group()) ? gate::Compare::value : gate::Compare::interval;
  if (map.has("compare"))
    rule.compare =
        map.word("compare", {"interval", "value"}) == "value" ? gate::Compare::value : gate::Compare::interval;
  if (gate::is_counted(rule.group()) && rule.compare == gate::Compare::interval)
    map.fail("compare", fmt::format("expected 'value': {} has no interval", rule.metric));
  if (map.has("against"))
    rule.against =
        map.word("against", {"baseline", "release"}) == "release" ? gate::Against::release : gate::Against::baseline;
  if (map.has("pool")) {
    const std::string pool = map.word("pool", {"each", "questions", "tasks"});
    rule.pool = pool == "each" ? gate::Pool::each : pool == "tasks" ? gate::Pool::tasks : gate::Pool::questions;
  }
  if (map.has("stored_arm")) rule.stored_arm = map.text("stored_arm");
  if (map.has("uncertainty")) {
    rule.uncertainty = bound(map, "uncertainty").value;
    if (*rule.uncertainty < 0.0 || *rule.uncertainty >= 1.0)
      map.fail("uncertainty", fmt::format("expected 0 or more and below 1, found {}", *rule.uncertainty));
  }
  check_together(map, rule);
  return rule;
}

}  // namespace

gate::Policy parse_gate_policy(const std::string& yaml, const std::filesystem::path& file) {
  const YAML::Node root = parse_yaml(yaml, file, "a policy with rules");
  const YamlMap map(root, file, "a gate's policy", {"name", "confidence", "inconclusive", "rules"});
  gate::Policy policy;
  policy.name = map.has("name") ? name(map) : file.stem().string();
  gate::Rule defaults;
  if (map.has("confidence")) defaults.confidence = map.number("confidence", 0.5, 1.0);
  if (map.has("inconclusive")) defaults.inconclusive = parse_consequence(map);
  std::set<std::string> names;
  for (const YAML::Node& node : map.list("rules", "a list of rules, at least one")) {
    policy.rules.push_back(parse_rule(node, file, defaults));
    if (!names.insert(policy.rules.back().name).second)
      throw ConfigError(fmt::format("{}: key 'name': expected another name than '{}', which a rule before has",
                                    policy.rules.back().place, policy.rules.back().name));
  }
  return policy;
}

gate::Policy load_gate_policy(const std::filesystem::path& file) {
  return parse_gate_policy(read_yaml_file(file), file);
}

}  // namespace replayeval
