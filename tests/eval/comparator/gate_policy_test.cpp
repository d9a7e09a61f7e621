#include "eval/comparator/gate_policy.h"

#include <gmock/gmock.h>

#include <string>

#include "eval/comparator/run_config.h"

namespace replayeval {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace gate = reports::gate;

gate::Rule rule(const std::string& text) {
  return parse_gate_policy("rules:\n  - {name: a, " + text + "}\n", "p.yaml").rules.at(0);
}

std::string refusal(const std::string& yaml) {
  try {
    parse_gate_policy(yaml, "p.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string rule_refusal(const std::string& text) { return refusal("rules:\n  - {name: a, " + text + "}\n"); }

TEST(GatePolicy, DefaultsAreStrict) {
  const gate::Policy policy =
      parse_gate_policy("rules:\n  - {name: a, metric: delta.acc, at_least: -0.01}\n", "dir/tasks.yaml");
  EXPECT_EQ(policy.name, "tasks");
  const gate::Rule& made = policy.rules.at(0);
  EXPECT_EQ(made.inconclusive, gate::OnInconclusive::fail);
  EXPECT_EQ(made.compare, gate::Compare::interval);
  EXPECT_EQ(made.against, gate::Against::baseline);
  EXPECT_EQ(made.pool, gate::Pool::each);
  EXPECT_EQ(made.confidence, 0.95);
  EXPECT_EQ(made.arms, std::vector<std::string>{"*"});
  EXPECT_EQ(made.margin.at_least, -0.01);
  EXPECT_FALSE(made.margin.at_most);
  EXPECT_EQ(made.place, "dir/tasks.yaml:2:5");
}

TEST(GatePolicy, EveryKeyArrives) {
  const gate::Policy policy = parse_gate_policy(
      "name: x\nconfidence: 0.9\ninconclusive: warn\nrules:\n"
      "  - {name: a, metric: delta.acc, arms: [b, 'c*'], workloads: d, within: 1 %, pool: questions}\n"
      "  - {name: b, metric: speed.tokens_per_second, at_least: -5%, against: release, uncertainty: 2 %, confidence: "
      "0.99, inconclusive: pass}\n"
      "  - {name: c, metric: divergence.kl_max, at_most: 1e-3, compare: value}\n",
      "p.yaml");
  EXPECT_EQ(policy.name, "x");
  const gate::Rule &a = policy.rules.at(0), &b = policy.rules.at(1), &c = policy.rules.at(2);
  EXPECT_EQ(a.arms, (std::vector<std::string>{"b", "c*"}));
  EXPECT_EQ(a.workloads, std::vector<std::string>{"d"});
  EXPECT_EQ(a.margin.at_least, -0.01);
  EXPECT_EQ(a.margin.at_most, 0.01);
  EXPECT_EQ(a.pool, gate::Pool::questions);
  EXPECT_EQ(a.inconclusive, gate::OnInconclusive::warn);
  EXPECT_EQ(a.confidence, 0.9);
  EXPECT_EQ(b.margin.at_least, -0.05);
  EXPECT_EQ(b.against, gate::Against::release);
  EXPECT_EQ(b.uncertainty, 0.02);
  EXPECT_EQ(b.confidence, 0.99);
  EXPECT_EQ(b.inconclusive, gate::OnInconclusive::pass);
  EXPECT_EQ(c.margin.at_most, 1e-3);
  EXPECT_EQ(c.compare, gate::Compare::value);
}

TEST(GatePolicy, CountsAreComparedByValue) {
  EXPECT_EQ(rule("metric: storage.non_finite, at_most: 0").compare, gate::Compare::value);
  EXPECT_THAT(rule_refusal("metric: churn.broken, at_most: 0, compare: interval"),
              HasSubstr("key 'compare': expected 'value': churn.broken has no interval"));
}

TEST(GatePolicy, RefusesWhatIsNoPolicy) {
  EXPECT_THAT(refusal(""), HasSubstr("p.yaml: empty; expected a policy with rules"));
  EXPECT_THAT(refusal("name: x\n"), HasSubstr("key 'rules': missing from a gate's policy"));
  EXPECT_THAT(refusal("rules: []\n"), HasSubstr("p.yaml:1:8: key 'rules': expected a list of rules, at least one, "
                                                "found an empty list"));
  EXPECT_THAT(refusal("rules: [a\n"), StartsWith("p.yaml:"));
  EXPECT_THAT(refusal("rules:\n  - {name: a, metric: delta.acc, at_mots: 1}\n"),
              HasSubstr("p.yaml:2:34: key 'at_mots': unknown in a rule; expected one of name, metric, workloads"));
  EXPECT_THAT(refusal("rules:\n  - &r {name: a, metric: delta.acc, at_most: 1}\n  - *r\n"),
              HasSubstr("expected another name than 'a'"));
}

TEST(GatePolicy, RefusesRulesThatCannotBeMeant) {
  EXPECT_THAT(rule_refusal("metric: delta.acc"), HasSubstr("the rule has no margin; expected at_most, at_least or"));
  EXPECT_THAT(rule_refusal("metric: acc, at_least: 0"),
              HasSubstr("p.yaml:2:23: key 'metric': expected GROUP.NAME with a group of delta, divergence, "));
  EXPECT_THAT(rule_refusal("metric: speed.token, at_least: 0"),
              HasSubstr("expected one of speed.tokens_per_second, speed.over_baseline; found 'speed.token'"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_least: 1, at_most: 0"),
              HasSubstr("key 'at_least': expected at most"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, within: -1"), HasSubstr("key 'within': expected 0 or more"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, within: 1, at_most: 1"), HasSubstr("without at_most and at_least"));
  for (const char* bad : {"nan", "inf", "x", "'%'", "1e999", "1 % %"})
    EXPECT_THAT(rule_refusal(std::string("metric: delta.acc, at_most: ") + bad),
                HasSubstr("key 'at_most': expected a number, or one in percent such as '0.1 %'"))
        << bad;
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_most: 1, confidence: 0.2"), HasSubstr("between 0.5 and 1"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_most: 1, inconclusive: maybe"), HasSubstr("pass, warn, fail"));
  EXPECT_THAT(rule_refusal("metric: speed.over_baseline, at_least: 1"),
              HasSubstr("key 'uncertainty': missing from a rule of speed"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_least: 1, uncertainty: 1 %"), HasSubstr("expected only with speed"));
  EXPECT_THAT(rule_refusal("metric: divergence.kl_mean, at_most: 1, pool: tasks"), HasSubstr("key 'pool'"));
}

}  // namespace
}  // namespace replayeval
